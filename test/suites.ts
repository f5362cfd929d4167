/**
 * Parts of the test run, for machines and users on which the whole would take too long. `npm test -- --suite core` runs one;
 * whatever a suite does not have runs in plain `npm test` on the machine of CI's main lane.
 */

interface Suite {
  readonly unit: readonly string[];
  readonly integration: readonly string[];
  readonly alone: readonly string[];
  readonly bubblewrap: readonly string[];
}

const integration = (...names: readonly string[]): readonly string[] =>
  names.map((name) => `test/integration/${name}.test.ts`);
const security = (...names: readonly string[]): readonly string[] =>
  names.map((name) => `test/security/${name}.test.ts`);

const suites: Readonly<Record<string, Suite>> = {
  /** The tests that say most about another engine, system or Node.js: life cycle, limits, services, gate, recovery, builds. */
  core: {
    unit: ['src/**/*.test.ts', 'scripts/**/*.test.mjs'],
    integration: [
      ...integration('doctor', 'porter-box', 'project-images', 'sandboxes', 'services'),
      ...security('egress-hosts', 'engine-restart', 'services-network', 'strict-profile'),
      'test/recovery/crash-points.test.ts',
    ],
    alone: [],
    bubblewrap: security('egress-hosts'),
  },
  /**
   * The tests that read or depend on control groups, on both engines: limits, memory, pause, end. Services are not among them:
   * they fail on debian-13-cgroup2.
   */
  cgroup2: {
    unit: [],
    integration: [
      ...integration('bubblewrap', 'doctor', 'porter-box', 'run', 'sandboxes'),
      ...security('bubblewrap-escapes', 'egress-hosts', 'engine-restart', 'strict-profile'),
      'test/recovery/crash-points.test.ts',
    ],
    alone: [],
    bubblewrap: [
      ...integration('run', 'sandboxes'),
      ...security('egress-hosts', 'strict-profile'),
      'test/recovery/crash-points.test.ts',
    ],
  },
  /** Programs of others: agents, browser, HTTPS clients, MCP inspector, Tor, and their images; bare machines; a release. */
  clients: {
    unit: [],
    integration: integration('browser', 'egress-https-clients', 'mcp-inspector'),
    alone: [
      ...integration('agent-clients.alone', 'agent-terminal.alone', 'fresh-machine.alone', 'templates.alone'),
      ...security('egress-tor.alone'),
      'test/package/release.alone.test.ts',
    ],
    bubblewrap: [],
  },
  /** Tests whose result can differ by user: owners and modes of files, control groups, sockets, processes, mounts. */
  user: {
    unit: ['src/**/*.test.ts'],
    integration: [
      'test/porter/*.test.ts',
      ...integration(
        'agents-git',
        'apply',
        'both-engines',
        'bubblewrap',
        'cli-exec',
        'cli-files',
        'cli-folder',
      ),
      ...integration('copies', 'daemon', 'doctor', 'engine-boxes', 'engine-discovery', 'inject', 'keyring'),
      ...integration(
        'mount-probe',
        'porter-volume',
        'prune',
        'run',
        'setup-engine',
        'ssh-agent',
        'user-image',
      ),
      ...security(
        'bubblewrap-escapes',
        'exec-battery',
        'files',
        'leaks',
        'live-workspace',
        'porter-boundary',
      ),
      ...security('sandbox-boundary', 'strict-profile'),
    ],
    alone: [],
    bubblewrap: integration('guard'),
  },
};

export function chosenSuite(name: string | undefined): Suite | undefined {
  if (name === undefined) return undefined;
  const suite = suites[name];
  if (suite === undefined) {
    throw new Error(`there is no suite ${name}; there are ${Object.keys(suites).join(', ')}`);
  }
  return suite;
}
