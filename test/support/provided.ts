/** What the global set-up hands to every integration test, over vitest's process boundary (so plain data only). */

export interface ProvidedEngine {
  /** As `DOCKER_HOST` takes it. */
  readonly endpoint: string;
  readonly apiVersion: string;
  /** The reference of the test image, present on the engine. */
  readonly image: string;
  /** The reference of the base image, as a user has it. */
  readonly baseImage: string;
}

declare module 'vitest' {
  export interface ProvidedContext {
    engine: ProvidedEngine;
    /** The value of the label `dev.sallyport.test` on everything that tests make. */
    runId: string;
    /** Holds a state folder for each file that runs at a time (state-folder.ts). */
    stateFolders: string;
  }
}
