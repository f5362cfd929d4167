/** [N23] The shape of action.yml. What its steps do is tested with a release (release.alone.test.ts). */

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packageInfo } from '../../src/lib/package-root.ts';

interface ActionStep {
  readonly shell?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly description?: string; readonly required?: boolean }>>;
  readonly outputs: Readonly<Record<string, { readonly description?: string; readonly value?: string }>>;
  readonly runs: { readonly using: string; readonly steps: readonly ActionStep[] };
}

const { root } = packageInfo();
const action = parse(readFileSync(join(root, 'action.yml'), 'utf8')) as Action;
const script = readFileSync(join(root, 'scripts/action.sh'), 'utf8');

describe('the GitHub Action', () => {
  it('[N23] is composite, and each of its steps names its shell', () => {
    expect(action.runs.using).toBe('composite');
    for (const { shell, run } of action.runs.steps) {
      expect(shell).toBe('bash');
      expect(existsSync(join(root, /GITHUB_ACTION_PATH\/(\S+)"/.exec(run ?? '')?.[1] ?? 'absent'))).toBe(
        true,
      );
    }
  });

  it('[N23] puts no input into the text of a script, where a pull request could add commands', () => {
    for (const { run } of action.runs.steps) expect(run).not.toContain('${{');
  });

  it('[N23] hands each input over by a variable that the script reads, and describes it', () => {
    const variables = action.runs.steps.flatMap(({ env = {} }) => Object.entries(env));
    for (const [name, { description }] of Object.entries(action.inputs)) {
      expect(description).toMatch(/\w/);
      const variable = `INPUT_${name.toUpperCase().replaceAll('-', '_')}`;
      expect(variables).toContainEqual([variable, `\${{ inputs.${name} }}`]);
      expect(script).toContain(variable);
    }
    expect(action.outputs['exit-code']?.value).toMatch(/^\$\{\{ steps\.run\.outputs\.exit-code \}\}$/);
  });
});
