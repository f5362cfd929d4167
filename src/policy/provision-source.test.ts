import { describe, expect, it } from 'vitest';
import type { Spec } from '../protocol/spec.ts';
import { provisionRefusals } from './provision-source.ts';

describe('what may become the base image', () => {
  it('[G8] is a sandbox that was given nothing and has run nothing', () => {
    expect(provisionRefusals({ image: 'debian:bookworm-slim' }, 0)).toEqual([]);
  });

  it.each<[string, Spec, number, RegExp]>([
    ['has run a command', {}, 1, /has run 1 command$/],
    ['has run several', {}, 3, /has run 3 commands/],
    ['has variables', { envs: { TOKEN: 'x' } }, 0, /envs/],
    ['has credentials of a tool', { builtin_tools: ['git'] }, 0, /git/],
    ['has copies', { copies: [{ source: '/a', target: '/b' }] }, 0, /copied/],
    ['has a copied workspace', { workspace: { path: '/a', target: '/w', mode: 'copy' } }, 0, /copied/],
    ['has a live workspace', { workspace: { path: '/a', target: '/w', mode: 'live' } }, 0, /mounted/],
    ['has mounts', { mounts: [{ source: '/a', target: '/b', writable: false }] }, 0, /mounted/],
  ])('[G8] is not one that %s', (_what, spec, execs, reason) => {
    expect(provisionRefusals(spec, execs)).toEqual([expect.stringMatching(reason)]);
  });
});
