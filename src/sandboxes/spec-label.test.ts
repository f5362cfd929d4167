import { describe, expect, it } from 'vitest';
import { parseSpec } from '../protocol/parse-spec.ts';
import { specLabel } from './spec-label.ts';

describe('a spec in a label', () => {
  it('[A12] reads as the same spec, but for the variables, which are not in it', () => {
    const input = {
      image: 'debian',
      idle_ttl: '90s',
      max_lifetime: 'never',
      limits: { memory: '1g' },
      ports: [3000, '8080:80', '[::1]:1:2'],
      required_services: [
        {
          name: 'db',
          image: 'postgres',
          healthcheck: { test: 'true', interval: '200ms', start_period: '1m' },
        },
      ],
      optional_services: [{ name: 'cache', image: 'redis' }],
    };
    const withSecrets = {
      ...input,
      envs: { A: 'hunter2' },
      optional_services: [{ name: 'cache', image: 'redis', envs: { B: 'hunter2' } }],
    };
    const text = specLabel(parseSpec(withSecrets));
    expect(text).not.toContain('hunter2');
    expect(parseSpec(JSON.parse(text))).toEqual(parseSpec(input));
  });
});
