/** What a provisioned image is: the version of its marker, shared with the Dockerfiles, and where the marker lies (G9). */

/**
 * Raise it when provision.sh promises something new: images with an older marker then count as not provisioned.
 * Passed to the Dockerfiles as a build argument, so the number is written here and nowhere else.
 */
export const provisionVersion = 1;

export const provisionMarker = `/opt/sallyport/.provisioned.v${provisionVersion}`;
