/**
 * Bans that an import graph does not show: `process.env` outside config.ts, `console` outside the command line, Docker's
 * wire types outside engines/docker, child processes outside the few places that may start one.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './steps.mjs';

const rules = [
  {
    name: 'process.env only in config.ts files',
    pattern: /\bprocess\.env\b/,
    allowed: (path) => /(^|\/)config\.ts$/.test(path),
  },
  {
    name: 'console only in src/cli',
    pattern: /\bconsole\.\w+\(/,
    allowed: (path) => path.startsWith('src/cli/'),
  },
  {
    name: 'the command line writes only in src/cli/output.ts, which makes harmless what others wrote',
    pattern: /\bprocess\.std(out|err)\.write\(|\bconsole\.\w+\(/,
    allowed: (path) => path === 'src/cli/output.ts' || path === 'src/daemon/main.ts',
  },
  {
    name: 'stdout and stderr are asked about or given to pump() outside of src/cli/output.ts, and to nothing else that writes',
    pattern:
      /(?<!\bpump\([^;]*)\bprocess\.std(out|err)\b(?!\.(isTTY|rows|columns|on|off)\b)|\bstd(out|err)\b[^;=]*\} = process\b/,
    allowed: (path) => path === 'src/cli/output.ts' || path === 'src/daemon/main.ts',
  },
  {
    name: 'raw bytes go to a terminal only where they are of the command that the user runs (foreground.ts)',
    pattern: /\bpump\((?!shownContent)[^;]*process\.std(out|err)\)/,
    allowed: (path) => /^src\/cli\/(foreground|commands\/(attach|logs|daemon|diff))\.ts$/.test(path),
  },
  {
    name: 'child_process only where DESIGN allows it',
    pattern: /['"](node:)?child_process['"]/,
    allowed: (path) =>
      /^src\/(setup\/|images\/|engines\/bubblewrap\/|engines\/docker\/wire\/ssh\.ts|gate\/tor|guard\/|store\/|agents\/git|cli\/open-browser\.ts|sdk\/start-daemon\.ts|lib\/(process-start|low-priority)\.ts)/.test(
        path,
      ),
  },
  {
    name: "Docker's types only in engines/docker",
    pattern: /engines\/docker\/types/,
    allowed: (path) => path.startsWith('src/engines/docker/'),
  },
  { name: 'no default export', pattern: /^export default\b/m, allowed: () => false },
  { name: 'no export *', pattern: /^export \*/m, allowed: () => false },
];

let found = 0;
for (const entry of readdirSync(join(root, 'src'), { withFileTypes: true, recursive: true })) {
  if (!entry.isFile() || !entry.name.endsWith('.ts') || entry.name.endsWith('.test.ts')) continue;
  const path = relative(root, join(entry.parentPath, entry.name));
  const text = readFileSync(join(root, path), 'utf8');
  for (const rule of rules) {
    if (!rule.pattern.test(text) || rule.allowed(path)) continue;
    console.error(`${path}: ${rule.name}`);
    found++;
  }
}
process.exitCode = found === 0 ? 0 : 1;
