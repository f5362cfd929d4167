/**
 * How Chromium is started in a sandbox so that it leaks neither a name nor an address (G12), as pure data. The flags are
 * said here as well as in the browser image's own wrapper, so that any image with a Chromium has them.
 */

import type { BrowserBody } from '../../protocol/requests.ts';
import { browserProfile, devToolsPort } from '../../sandboxes/browser-port.ts';

export function browserCommand(
  { window, program, flags }: Pick<BrowserBody, 'window' | 'program' | 'flags'>,
  services: readonly string[],
): readonly string[] {
  return [
    program,
    '--headless',
    `--window-size=${window.width},${window.height}`,
    // What it would ask its maker for by itself would only be denied.
    ...['--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ...flags,
    // The last one counts, so these come after what the caller wants.
    '--no-sandbox',
    '--disable-dev-shm-usage',
    '--disable-quic',
    `--user-data-dir=${browserProfile}`,
    `--remote-debugging-port=${devToolsPort}`,
    ...withoutLeaks(services),
    'about:blank',
  ];
}

/**
 * It resolves no name itself: the proxy does, which is why that is spelled `localhost`. Services beside the sandbox are in no
 * DNS but the sandbox's own, and the gate does not lead to them.
 */
function withoutLeaks(services: readonly string[]): readonly string[] {
  const known = ['localhost', ...services].map((name) => ` , EXCLUDE ${name}`).join('');
  return [
    `--host-resolver-rules=MAP * ~NOTFOUND${known}`,
    // The whole browser and the headless shell each know one of the two names.
    '--webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--proxy-server=http://localhost:3128',
    ...(services.length === 0 ? [] : [`--proxy-bypass-list=${services.join(';')}`]),
  ];
}

/** The path of the browser's own WebSocket, from the line that Chromium prints when it listens. */
export function devToolsPath(said: string): string | undefined {
  return /^DevTools listening on ws:\/\/[^/\s]+(\/devtools\/browser\/[\w-]+)\s*$/m.exec(said)?.[1];
}
