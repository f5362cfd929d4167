import { describe, expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { specDifferences, specHash } from './spec-identity.ts';

const spec = (input: unknown) => parseSpec(input);

describe('the identity of a spec', () => {
  it('is the same for other orders and spellings of the same wish', () => {
    const a = spec({ name: 'a', limits: { memory: '1g', cpus: 1 }, mounts: [] });
    const b = spec({ limits: { cpus: 1, memory: '1024m' }, name: 'b', envs: {} });
    expect(specHash(a)).toBe(specHash(b));
    expect(specDifferences(a, b)).toEqual([]);
  });

  it('names each field that differs, and no value', () => {
    const a = spec({ image: 'x', limits: { memory: '1g', pids: 5 }, envs: { TOKEN: 'one', SAME: 's' } });
    const b = spec({
      image: 'y',
      limits: { memory: '2g', pids: 5 },
      envs: { TOKEN: 'two', SAME: 's' },
      user: '5:5',
    });
    expect(specDifferences(a, b)).toEqual(['envs.TOKEN', 'image', 'limits.memory', 'user']);
    expect(specHash(a)).not.toBe(specHash(b));
  });

  it('[A4] tells a shared tool from a protected one, however that is written', () => {
    const plain = spec({ builtin_tools: ['uv'] });
    const spelled = spec({ builtin_tools: [{ name: 'uv', mode: 'protected' }] });
    const shared = spec({ builtin_tools: [{ name: 'uv', mode: 'shared' }] });
    expect(specHash(spelled)).toBe(specHash(plain));
    expect(specHash(shared)).not.toBe(specHash(plain));
    expect(specDifferences(plain, shared)).toEqual(['builtin_tools']);
    // As a label keeps it.
    expect(spec(JSON.parse(JSON.stringify(shared)))).toEqual(shared);
  });

  it('tells the order of a list apart', () => {
    expect(specDifferences(spec({ command: ['a', 'b'] }), spec({ command: ['b', 'a'] }))).toEqual([
      'command',
    ]);
  });
});
