import { describe, expect, it } from 'vitest';
import type { SandboxRecord } from './records.ts';
import { withScan } from './verify.ts';

const live = {
  spec: { workspace: { path: '/work', target: '/workspace', mode: 'live' } },
} as unknown as Pick<SandboxRecord, 'spec'>;
const ofTools = { spec: {} } as Pick<SandboxRecord, 'spec'>;
const verified = { ok: true, checks: [] };

describe('[N5] the rows of a scan', () => {
  it('say that the scan is not finished, which is no failure', () => {
    expect(withScan(verified, { finished: false, planted: [] }, live)).toEqual({
      ok: true,
      checks: [
        {
          name: 'workspace scan',
          expected: 'nothing planted',
          found: 'scan not finished',
          status: 'unknown',
        },
      ],
    });
    const { checks } = withScan(verified, { finished: false, planted: [] }, ofTools);
    expect(checks).toEqual([expect.objectContaining({ name: 'tools scan', found: 'scan not finished' })]);
  });

  it('are ok where a finished scan found nothing, and absent where nothing is scanned', () => {
    const { checks } = withScan(verified, { finished: true, planted: [] }, live);
    expect(checks).toEqual([expect.objectContaining({ name: 'workspace scan', status: 'ok' })]);
    expect(withScan(verified, undefined, live)).toEqual(verified);
  });
});
