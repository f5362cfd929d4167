import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageInfo } from '../../lib/package-root.ts';
import { browserBody } from '../../protocol/requests.ts';
import { isBrowser } from '../../sandboxes/browser-port.ts';
import { browserCommand, devToolsPath } from './browser-command.ts';

const usual = browserBody.parse({});

const heldBack = [
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost',
  '--webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
];

describe('the command of a browser', () => {
  it("[G12] has what keeps it from leaking, as the browser image's own wrapper has", async () => {
    const argv = browserCommand(usual, []);
    const wrapper = await readFile(join(packageInfo().root, 'images/browser/chromium'), 'utf8');
    for (const flag of heldBack) {
      expect(argv).toContain(flag);
      expect(wrapper.replaceAll("'", '')).toContain(flag);
    }
    expect(argv).toContain('--proxy-server=http://localhost:3128');
  });

  it('[G12] lets no flag of the caller come after them', () => {
    const flags = [
      '--host-resolver-rules=',
      '--proxy-server=direct://',
      '--webrtc-ip-handling-policy=default',
    ];
    const argv = browserCommand({ ...usual, flags }, []);
    for (const flag of flags) {
      const last = argv.findLast((word) => word.startsWith(`${flag.split('=')[0]}=`));
      expect(last).not.toBe(flag);
    }
  });

  it('[G12] reaches services beside it by their names, and knows itself again', () => {
    const argv = browserCommand(usual, ['db', 'web']);
    expect(argv).toContain(
      '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE db , EXCLUDE web',
    );
    expect(argv).toContain('--proxy-bypass-list=db;web');
    expect(isBrowser(argv)).toBe(true);
    expect(isBrowser(['chromium', '--headless'])).toBe(false);
  });

  it('prints the path of its own WebSocket in one line', () => {
    const line = 'DevTools listening on ws://127.0.0.1:9222/devtools/browser/e107184c-2fa4';
    expect(devToolsPath(`noise\n${line}\n`)).toBe('/devtools/browser/e107184c-2fa4');
    expect(devToolsPath('DevTools listening on nothing\n')).toBeUndefined();
  });
});
