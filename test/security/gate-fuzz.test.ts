import { describe, it } from 'vitest';
import { fuzzHosts } from '../fuzz/egress-hosts.ts';
import { fuzzGate } from '../fuzz/gate.ts';

describe('a short seeded run of `npm run fuzz -- --gate`', () => {
  it('[R6] finds nothing in the parsers of the gate', async () => {
    await fuzzGate({ seed: 20_261_116, cases: 20_000 });
  });

  it('[R6] finds nothing in the one parser of hosts', async () => {
    await fuzzHosts({ seed: 20_261_116, cases: 50_000 });
  });
});
