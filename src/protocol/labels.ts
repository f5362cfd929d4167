/** The labels on everything that Sallyport makes in an engine. What does not carry `owned` is never touched (A12). */

export const label = {
  /** `true` on every object of ours. */
  owned: 'dev.sallyport.owned',
  /** Whose object this is: see `ownerId`. Absent on caches that users share (porter volumes, images). */
  owner: 'dev.sallyport.owner',
  kind: 'dev.sallyport.kind',
  /** Of a sandbox: who it is, what people call it, and what it was asked to be. */
  id: 'dev.sallyport.id',
  name: 'dev.sallyport.name',
  spec: 'dev.sallyport.spec',
  /** The runtime that was chosen, on a sandbox whose spec leaves that open. */
  runtime: 'dev.sallyport.runtime',
  /** Of the container of a service: its name. `id` and `name` are its sandbox's. */
  service: 'dev.sallyport.service',
  /** `ephemeral` on boxes of the strict profile. */
  sandbox: 'dev.sallyport.sandbox',
  /** The hash of the inputs that a cached object was made from. */
  inputs: 'dev.sallyport.inputs',
  /** Of a derived image: the id of the image that it was made of. */
  base: 'dev.sallyport.base',
  /** Of an image made from a template: its name. */
  template: 'dev.sallyport.template',
  /** The marker's version, on a base image that was provisioned out of what a sandbox is made of. */
  provisioned: 'dev.sallyport.provisioned',
  version: 'dev.sallyport.version',
  /** Set by the test suite on what it makes itself. */
  test: 'dev.sallyport.test',
} as const;

export type OwnedKind =
  | 'sandbox'
  | 'service'
  | 'network'
  | 'porter'
  | 'porter-filler'
  | 'image-base'
  | 'image-test'
  | 'image-template'
  | 'image-bootstrap'
  | 'image-user'
  | 'image-project'
  /** A volume that says who builds an image. */
  | 'build-turn'
  /** A container that becomes an image and is never started. */
  | 'image-draft'
  /** A container in which an image's promises are tried. */
  | 'image-check'
  /** A container in which a runtime is tried. */
  | 'runtime-check';

export function ownedLabels(
  kind: OwnedKind,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return { [label.owned]: 'true', [label.kind]: kind, ...more };
}
