/** Names inside a request path. Encoded, so that no name can reach another resource than the one it names. */

export function pathSegment(name: string): string {
  // URL handling takes dots for steps up the path, encoded or not; no object has such a name.
  return /^\.*$/.test(name) ? '-' : encodeURIComponent(name);
}

/** An image reference keeps its slashes: `registry/name:tag`. */
export function imagePath(reference: string): string {
  return reference.split('/').map(pathSegment).join('/');
}
