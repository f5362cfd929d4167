import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nameSchema } from '../protocol/spec.ts';
import { agentBoxName, branchSlug } from './agent-name.ts';

const workspace = '/home/me/app';
const hash = createHash('md5').update(workspace).digest('hex').slice(0, 8);

describe('the name of an agent’s sandbox', () => {
  it('[R4] says agent, branch and repository', () => {
    expect(agentBoxName({ agent: 'claude', branch: 'main', workspace })).toBe(
      `sallyport-claude-main-${hash}`,
    );
    expect(agentBoxName({ agent: 'claude', workspace })).toBe(`sallyport-claude-${hash}`);
  });

  it.each([
    ['feature/login', 'feature-login'],
    ['two words', 'two-words'],
    ['fix 🚀', 'fix'],
    ['Größe', 'gro-e'],
    ['x'.repeat(300), 'x'.repeat(29)],
    ['日本', 'box'],
  ])('[R4] makes of the branch %j something that begins with %j, with a hash of it', (branch, start) => {
    const name = agentBoxName({ agent: 'codex', branch, workspace });
    expect(name).toMatch(new RegExp(`^sallyport-codex-${start}-[0-9a-f]{8}-${hash}$`));
    expect(nameSchema.safeParse(name).success).toBe(true);
  });

  it('[R4] keeps apart what would look the same', () => {
    const wishes: readonly [string, string | undefined][] = [
      ['claude', 'feature/login'],
      ['claude', 'feature-login'],
      ['claude', 'Feature-Login'],
      ['claude', 'feature login'],
      ['a-b', 'c'],
      ['a', 'b-c'],
      ['a', undefined],
      ['a', 'box'],
      ['a-box', undefined],
      ['agent-with-a-long-name', 'main'],
      ['agent-with-a-long-word', 'main'],
      ['claude', 'x'.repeat(299)],
      ['claude', 'x'.repeat(300)],
    ];
    const names = wishes.map(([agent, branch]) =>
      agentBoxName({ agent, workspace, ...(branch === undefined ? {} : { branch }) }),
    );
    expect(new Set(names).size).toBe(wishes.length);
    // A branch that is named as the tagged form of another gets a tag of its own.
    const taken = names[0]?.slice('sallyport-claude-'.length, -`-${hash}`.length) ?? '';
    expect(names).not.toContain(agentBoxName({ agent: 'claude', branch: taken, workspace }));
  });

  it('[R4] is a name, and different for different wishes, whatever they are', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }),
      fc.stringMatching(/^[a-c/ -]{1,6}$/),
      fc.stringMatching(/^[ab]-[0-9a-f]{8}$/),
    );
    const wish = fc.record({ agent: text, branch: fc.option(text, { nil: undefined }) });
    const nameOf = ({ agent, branch }: { agent: string; branch: string | undefined }): string =>
      agentBoxName({ agent, workspace, ...(branch === undefined ? {} : { branch }) });
    fc.assert(fc.property(wish, (one) => nameSchema.safeParse(nameOf(one)).success));
    fc.assert(
      fc.property(wish, wish, (one, other) => {
        fc.pre(one.agent !== other.agent || one.branch !== other.branch);
        return nameOf(one) !== nameOf(other);
      }),
    );
  });

  it('tells branches apart as part of a path as well', () => {
    expect(branchSlug('main')).toBe('main');
    expect(branchSlug('a/b')).not.toBe(branchSlug('a-b'));
    expect(branchSlug(branchSlug('a/b'))).not.toBe(branchSlug('a/b'));
  });
});
