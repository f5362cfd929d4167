/** The Dockerfile of a workspace that its sandboxes' image is built from, at the root of the folder. */
export const dockerfileName = 'Dockerfile.sallyport';
