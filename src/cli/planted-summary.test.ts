import { describe, expect, it } from 'vitest';
import type { WorkspaceScanView } from '../protocol/views.ts';
import { plantedLines } from './planted-summary.ts';

const notFinished =
  'WARNING: workspace scan not finished; `sally verify` shows what was planted, if anything';

const finding = (path: string, more: Partial<WorkspaceScanView['planted'][number]> = {}) =>
  ({
    path,
    kind: 'name',
    how: 'new',
    found_at: '2026-01-01T00:00:01.000Z',
    advice: 'read it',
    ...more,
  }) as const;

describe('[N5] what a command prints of a scan', () => {
  it('is nothing where the scan is finished and found nothing', () => {
    expect(plantedLines({ finished: true, planted: [] }, '')).toEqual([]);
  });

  it('says that the scan is not finished, also below what is known until then', () => {
    expect(plantedLines({ finished: false, planted: [] }, '')).toEqual([notFinished]);
    expect(plantedLines({ finished: false, planted: [finding('.npmrc')] }, '')).toEqual([
      'WARNING: 1 thing appeared in the workspace that programs of this machine may execute:',
      '  .npmrc (name, new): read it',
      notFinished,
    ]);
  });

  it('leaves out what was found before the command', () => {
    const planted = [finding('.npmrc'), finding('.exrc', { found_at: '2026-01-01T00:00:03.000Z' })];
    const lines = plantedLines({ finished: true, planted }, '2026-01-01T00:00:02.000Z');
    expect(lines).toEqual([
      'WARNING: 1 thing appeared in the workspace that programs of this machine may execute:',
      '  .exrc (name, new): read it',
    ]);
  });

  it('counts what it does not show, and says why a scan is incomplete', () => {
    const planted = Array.from({ length: 12 }, (_, index) => finding(`${index}/.npmrc`, { tool: 'claude' }));
    const lines = plantedLines({ finished: true, incomplete: 'it took long', planted }, '');
    expect(lines[0]).toContain('12 things appeared in folders of tools');
    expect(lines.slice(-2)).toEqual([
      '  and 2 more; `sally verify` lists them',
      'WARNING: workspace scan incomplete: it took long',
    ]);
  });
});
