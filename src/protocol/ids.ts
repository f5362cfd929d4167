/** Identities. Branded, so that a name cannot be passed where an id is meant. */

export type SandboxId = string & { readonly __brand: 'SandboxId' };
export type ExecId = string & { readonly __brand: 'ExecId' };

const sandboxIdPattern = /^sb-[a-z0-9]{10}$/;
const execIdPattern = /^ex-[a-z0-9]{12}$/;

export const isSandboxId = (text: string): text is SandboxId => sandboxIdPattern.test(text);
export const isExecId = (text: string): text is ExecId => execIdPattern.test(text);

const alphabet = 'abcdefghijklmnopqrstuvwxyz012345';

/** `bytes` decide the id: as many as it has characters. */
export const sandboxIdFrom = (bytes: Uint8Array): SandboxId => `sb-${characters(bytes, 10)}` as SandboxId;
export const execIdFrom = (bytes: Uint8Array): ExecId => `ex-${characters(bytes, 12)}` as ExecId;

function characters(bytes: Uint8Array, count: number): string {
  if (bytes.length !== count) throw new RangeError(`${count} bytes make an id, not ${bytes.length}`);
  return Array.from(bytes, (byte) => alphabet[byte % alphabet.length]).join('');
}
