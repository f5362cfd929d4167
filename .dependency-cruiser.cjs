/** The dependency rule of ARCHITECTURE.md: who may import whom. A folder that is not listed may import only itself and lib. */

const mayImport = {
  lib: [],
  protocol: [],
  policy: ['protocol'],
  porter: ['protocol'],
  sandboxes: ['policy', 'porter', 'protocol'],
  'engines/docker': ['protocol', 'sandboxes/ports'],
  'engines/bubblewrap': ['protocol', 'policy/user-names', 'sandboxes/ports'],
  gate: ['policy', 'porter', 'protocol', 'sandboxes/ports'],
  images: ['policy', 'protocol', 'sandboxes/ports'],
  store: ['protocol', 'sandboxes/ports', 'sandboxes/records', 'porter/output-sink', 'images/ports'],
  config: ['protocol', 'policy'],
  agents: ['protocol', 'policy', 'config', 'sandboxes/ports'],
  guard: ['protocol', 'policy/command-risk', 'config', 'store/audit'],
  daemon: [
    'protocol',
    'policy',
    'porter',
    'sandboxes',
    'engines/docker',
    'engines/bubblewrap',
    'images',
    'setup',
    'store',
    'gate',
    'guard',
    'agents',
    // The MCP server over HTTP acts by the daemon's own API.
    'mcp',
    'sdk/client',
  ],
  // The codec of file trees is shared by both ends of the API.
  sdk: [
    'protocol',
    'porter/extents',
    'porter/tree-records',
    'porter/tree-stream',
    'policy/protected-names',
    'policy/forbidden-places',
    'guard',
    'agents/git',
    // Sandboxes of other engines are found without starting their daemons.
    'store/sandbox-names',
  ],
  mcp: ['protocol', 'sdk', 'policy/profiles'],
  setup: [
    'engines/docker',
    'images',
    'protocol',
    'sandboxes/ports',
    'porter/binary',
    'store/process-identity',
    'store/keyring',
    'store/secrets',
  ],
  cli: [
    'protocol',
    'sdk',
    'config',
    'setup',
    'mcp',
    'agents',
    'daemon/in-process',
    'policy/names',
    'policy/agent-name',
    'policy/protected-names',
    'policy/command-risk',
    'policy/egress/presets',
    'store/audit-reader',
    'guard',
    'agents',
  ],
};

const forbidden = Object.entries(mayImport).map(([folder, allowed]) => ({
  name: `${folder} may import ${['lib', ...allowed].join(', ')}`,
  severity: 'error',
  from: { path: `^src/${folder}/` },
  to: {
    path: '^src/',
    pathNot: [folder, 'lib', ...allowed].map((name) => `^src/${name}(/|\\.ts$)`),
  },
}));

module.exports = {
  forbidden: [
    {
      name: 'no cycles',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'every folder has a rule',
      severity: 'error',
      from: { path: '^src/', pathNot: Object.keys(mayImport).map((folder) => `^src/${folder}/`) },
      to: {},
    },
    {
      name: 'the ports are types only',
      severity: 'error',
      from: { path: '^src/(engines|gate|images|setup|store)/' },
      to: { path: '^src/(sandboxes/ports(\\.ts$|/)|images/ports\\.ts$)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'the command line loads set-up, daemon and images lazily',
      severity: 'error',
      from: { path: '^src/cli/(?!commands/)' },
      to: {
        path: '^src/(setup|daemon|images|porter|mcp)/',
        dependencyTypesNot: ['type-only', 'dynamic-import'],
      },
    },
    ...forbidden,
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '\\.test\\.ts$' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
