import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { commandExists, requirement } from '../../test/support/requires.ts';
import { forgetInstalled, installedByUs, missingPackages, recordInstalled } from './installed-packages.ts';

const hasDpkg = requirement('dpkg-query', commandExists('dpkg-query'));

describe.runIf(hasDpkg)('the packages that were installed by us', () => {
  it('[N23] are those that were missing, as long as they are installed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-packages-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'below', 'installed-packages');
    expect(await missingPackages(['dpkg', 'no-such-package'])).toEqual(['no-such-package']);
    expect(await installedByUs(file)).toEqual([]);
    await recordInstalled(['dpkg', 'no-such-package'], file);
    await recordInstalled(['dpkg', 'base-files'], file);
    expect(await installedByUs(file)).toEqual(['dpkg', 'base-files']);
    await forgetInstalled(file);
    expect(await installedByUs(file)).toEqual([]);
  });
});
