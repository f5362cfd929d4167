import { describe, expect, it } from 'vitest';
import { isSallyportError } from '../protocol/errors.ts';
import { agentOf, requireKnownAgent } from './prune-agent.ts';

const specs = [{ labels: { 'sallyport.agent': 'mine' } }, { agent: 'codex' }, {}];

function refusalOf(name: string): { readonly message: string; readonly known: unknown } {
  try {
    requireKnownAgent(name, specs, ['claude', 'opencode']);
  } catch (error) {
    if (isSallyportError(error, 'agent_unknown'))
      return { message: error.message, known: error.details['known'] };
    throw error;
  }
  throw new Error(`${name} was accepted`);
}

describe('[R5] the agent of a sandbox', () => {
  it('is the one of its label, else the one whose image it has', () => {
    expect(agentOf({ labels: { 'sallyport.agent': 'mine' }, agent: 'claude' })).toBe('mine');
    expect(agentOf({ labels: { team: 'web' }, agent: 'claude' })).toBe('claude');
    expect(agentOf({ labels: { team: 'web' } })).toBeUndefined();
    expect(agentOf({})).toBeUndefined();
  });
});

describe('[R5] the agent that a prune names', () => {
  it.each(['claude', 'opencode', 'mine', 'codex'])('may be %s, which is defined or has a sandbox', (name) => {
    expect(() => requireKnownAgent(name, specs, ['claude', 'opencode'])).not.toThrow();
  });

  it.each(['claud', 'Claude', 'toString', ''])('is refused as %j, with all that are known', (name) => {
    const { message, known } = refusalOf(name);
    expect(message).toContain(`there is no agent ${JSON.stringify(name)}`);
    expect(known).toEqual(['claude', 'codex', 'mine', 'opencode']);
  });

  it('is refused with the name that may have been meant', () => {
    expect(refusalOf('claud').message).toContain('did you mean claude?');
    expect(refusalOf('a'.repeat(500)).message.length).toBeLessThan(100);
  });
});
