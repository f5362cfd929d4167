/**
 * How much a runtime isolates, by the name that the engine has for it. Pure. The engine's configuration, which is trusted, defines
 * which program a name is.
 */

/** Asks for the runtime that isolates most of those that the engine has and that work. */
export const strongestRuntime = 'strongest';

/**
 * Weakest first. `bubblewrap`: namespaces and this machine's programs. `container`: namespaces, an image, the host's kernel. `gvisor`: a kernel in
 * user space. `vm`: a virtual machine.
 */
export const isolationLevels = ['bubblewrap', 'container', 'gvisor', 'vm'] as const;
export type IsolationLevel = (typeof isolationLevels)[number];

const vm = /(?:^|[./-])(?:kata|krun)/i;
const gvisor = /runsc|gvisor/i;

/** A name that says nothing is that of a container on the host's kernel: nothing more is claimed for it. */
export function isolationLevel(runtime: string): IsolationLevel {
  if (runtime === 'bwrap') return 'bubblewrap';
  if (gvisor.test(runtime)) return 'gvisor';
  return vm.test(runtime) ? 'vm' : 'container';
}
