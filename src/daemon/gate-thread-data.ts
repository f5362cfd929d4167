/** What the gate's thread is started with. */
export interface GateThreadData {
  /** Where the secrets are. */
  readonly stateDir: string;
  readonly dnsServers: readonly string[] | undefined;
  /** PEM. */
  readonly extraRoots: readonly string[];
}
