/**
 * Parts of the test run, for machines and users on which the whole would take too long. `npm test -- --suite core` runs one;
 * whatever a suite does not have runs in plain `npm test` on the machine of CI's main lane, but for most tests of `clients`.
 */

import { appendFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

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

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const testsBelow = (folder: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();

export const unitTests: readonly string[] = ['src/**/*.test.ts', 'scripts/**/*.test.mjs'];

/** Run once more on the other engine; test/support/engine-under-test.ts. */
const onBothEngines = [
  ...integration('guard'),
  ...security('egress-credentials', 'egress-hosts', 'preflight'),
];
/** The slow ones, only with the big sizes. */
const onBothEnginesInFull = [
  ...integration('apply', 'builtin-tools', 'cli-files', 'copies', 'inject', 'mcp', 'ports', 'previews'),
  ...integration('run', 'sandboxes', 'sdk', 'ssh-agent'),
  'test/recovery/crash-points.test.ts',
  ...security('egress-streams', 'exec-battery', 'files', 'live-workspace', 'own-program', 'planted'),
  ...security('sandbox-boundary', 'strict-profile', 'tool-copies', 'tool-folders', 'tool-placeholders'),
];

export function onBubblewrap(full: boolean): readonly string[] {
  return full ? [...onBothEngines, ...onBothEnginesInFull] : onBothEngines;
}

/** Programs of others: agents, browser, HTTPS clients, MCP inspector, Tor, and their images; bare machines; a release. */
const clients: Suite = {
  unit: [],
  integration: integration('browser', 'egress-https-clients', 'mcp-inspector'),
  alone: [
    ...integration('agent-clients.alone', 'agent-terminal.alone', 'fresh-machine.alone', 'templates.alone'),
    ...security('egress-tor.alone'),
    'test/package/release.alone.test.ts',
  ],
  bubblewrap: [],
};

const suites: Readonly<Record<string, Suite>> = {
  /** The tests that say most about another engine, system or Node.js: life cycle, limits, services, gate, recovery, builds. */
  core: {
    unit: unitTests,
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
  clients,
  /** Tests whose result can differ by user: owners and modes of files, control groups, sockets, processes, mounts. */
  user: {
    unit: ['src/**/*.test.ts'],
    integration: [
      ...testsBelow('test/porter'),
      ...integration('agents-each', 'agents-git', 'apply', 'both-engines', 'bubblewrap', 'builtin-tools'),
      ...integration('cli-exec', 'cli-files', 'cli-folder', 'copies', 'daemon', 'doctor', 'engine-boxes'),
      ...integration('engine-discovery', 'engines', 'inject', 'keyring', 'mcp', 'mount-probe'),
      ...integration('porter-volume', 'prune', 'run', 'sandboxes', 'sdk', 'setup-engine', 'ssh-agent'),
      ...integration('user-image'),
      ...security('bubblewrap-escapes', 'egress-streams', 'exec-battery', 'files', 'leaks'),
      ...security('live-workspace', 'own-program', 'planted', 'porter-boundary', 'sandbox-boundary'),
      ...security('set-id-bits', 'strict-profile', 'swapped-sources', 'tool-copies', 'tool-folders'),
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

/** Appends the files that a run does not include to the list of `npm test`, with the run that includes them. */
export function listLeftOutFiles({ suite, full }: { suite: Suite | undefined; full: boolean }): void {
  const list = process.env['SALLYPORT_LEFT_OUT'];
  if (list === undefined) return;
  for (const line of leftOutFiles(suite, full)) appendFileSync(list, `${JSON.stringify(line)}\n`);
}

interface LeftOut {
  readonly file: string;
  readonly name: string;
  readonly runsIn: string;
}

export function leftOutFiles(suite: Suite | undefined, full: boolean): readonly LeftOut[] {
  const inSuite = suite && new Set([...suite.unit, ...suite.integration, ...suite.alone]);
  const files = inSuite && [...unitTests, ...testsBelow('test')].filter((file) => !inSuite.has(file));
  const bubblewrap = new Set(suite?.bubblewrap ?? onBubblewrap(full));
  // Plain `npm test` leaves out most tests of these files: `realClients` of test/support/selection.ts.
  const ofClients = new Set([...clients.integration, ...clients.alone]);
  const notOnBubblewrap = onBubblewrap(true).filter((file) => !bubblewrap.has(file));
  return [
    ...(files ?? []).map((file) => ({
      file,
      name: 'all tests',
      runsIn: ofClients.has(file) ? 'npm test -- --suite clients' : 'npm test',
    })),
    ...notOnBubblewrap.map((file) => ({
      file,
      name: 'all tests on bubblewrap',
      runsIn: onBothEngines.includes(file) ? 'npm test' : 'npm run test:full',
    })),
  ];
}
