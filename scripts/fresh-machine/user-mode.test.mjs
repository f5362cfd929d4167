import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { distributionNamed, distributions } from './distributions.mjs';
import { environmentFile, kernelArguments, networkFile } from './user-mode.mjs';

describe('[N1] a fresh machine with a kernel of its own', () => {
  it('is one of the machines, and the others use the kernel outside', () => {
    const withKernel = Object.keys(distributions).filter((name) => distributionNamed(name).kernel);
    expect(withKernel).toEqual(['debian-13-cgroup2']);
  });

  it('gives its script the same environment, whatever characters are in it', () => {
    const value = `it's "$HOME" \`id\` \\ and\na line`;
    const { stdout } = spawnSync(
      'sh',
      ['-c', `${environmentFile({ PLAIN: 'yes', VALUE: value })}printf %s "$PLAIN $VALUE"`],
      {
        encoding: 'utf8',
        env: {},
      },
    );
    expect(stdout).toBe(`yes ${value}`);
  });

  it('has a route to each mirror and to nothing else', () => {
    const lines = networkFile(['192.0.2.1', '192.0.2.2']).trim().split('\n');
    expect(lines.filter((line) => line.startsWith('ip route'))).toEqual([
      'ip route add 192.0.2.1/32 via 10.0.2.2',
      'ip route add 192.0.2.2/32 via 10.0.2.2',
    ]);
  });

  it('starts its kernel with arguments that a shell takes as they are', () => {
    for (const argument of kernelArguments('sallyport-fresh-1-aB')) expect(argument).toMatch(/^[\w:=./,-]+$/);
  });
});
