import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readEngineEnvironment } from '../../src/engines/docker/config.ts';
import { readSetupEnvironment } from '../../src/setup/config.ts';
import { runDoctor } from '../../src/setup/doctor/run-doctor.ts';

describe('sally doctor', () => {
  it('[G3] says which engine was chosen and why, and judges every part of it', async () => {
    const { checks, summary } = await runDoctor({
      environment: readEngineEnvironment(),
      setup: readSetupEnvironment(),
    });
    expect(checks.map(({ id }) => id)).toEqual([
      'engine',
      'engine-version',
      'api-version',
      'containerd-version',
      'runc-version',
      'storage',
      'cgroup',
      'runtimes',
      'isolation-levels',
      'seccomp',
      'user-namespaces',
      'limits',
      'disk-engine',
      'disk-state',
      'bubblewrap',
      'keyring',
      'porter',
      'host-git',
    ]);
    expect(checks[0]).toMatchObject({ status: 'ok' });
    expect(checks[0]?.details?.at(-1)).toContain('answered, chosen');
    for (const check of checks) {
      expect(check.value).not.toBe('');
      if (check.status !== 'ok') expect(check.advice).toBeTruthy();
    }
    expect(summary.ok + summary.warn + summary.fail).toBe(checks.length);
  });

  it('[N5] says when git on this machine obeys bare repositories in a work tree, with the command that ends it', async () => {
    const home = await mkdtemp('/tmp/sally-d-');
    const setup = readSetupEnvironment({ ...process.env, HOME: home });
    const hostGit = async () => {
      const { checks } = await runDoctor({ environment: readEngineEnvironment(), setup });
      return checks.find(({ id }) => id === 'host-git');
    };
    const command = 'git config --global safe.bareRepository explicit';
    expect(await hostGit()).toMatchObject({ status: 'warn', advice: expect.stringContaining(command) });
    const [program = '', ...args] = command.split(' ');
    execFileSync(program, args, { env: setup.childVariables });
    expect(await hostGit()).toMatchObject({ status: 'ok' });
    await rm(home, { recursive: true });
  });

  it('[G3] fails with the trace of the search and what to do when the chosen engine does not answer', async () => {
    const home = await mkdtemp('/tmp/sally-d-');
    const { checks, summary } = await runDoctor({
      environment: readEngineEnvironment({ HOME: home, DOCKER_HOST: `unix://${join(home, 'none.sock')}` }),
      setup: readSetupEnvironment({ HOME: home, PATH: '' }),
    });
    await rm(home, { recursive: true });
    expect(checks[0]).toMatchObject({
      id: 'engine',
      status: 'fail',
      advice: expect.stringContaining('sally setup'),
    });
    expect(checks[0]?.details).toEqual([expect.stringMatching(/^DOCKER_HOST .*there is no socket$/)]);
    expect(summary.fail).toBeGreaterThan(0);
  });
});
