import { describe, expect, it } from 'vitest';
import { isListing, throughDoor } from './devtools-json.ts';

const base = '127.0.0.1:4000/token';

describe('addresses in answers of DevTools', () => {
  it('[G12] lead through the port with its token', () => {
    const version = {
      Browser: 'HeadlessChrome/1',
      webSocketDebuggerUrl: 'ws://127.0.0.1:4000/devtools/browser/e107184c-2fa4',
    };
    expect(throughDoor(version, base)).toEqual({
      Browser: 'HeadlessChrome/1',
      webSocketDebuggerUrl: 'ws://127.0.0.1:4000/token/devtools/browser/e107184c-2fa4',
    });
    const page = {
      id: 'A1',
      webSocketDebuggerUrl: 'ws://localhost:9222/devtools/page/A1',
      devtoolsFrontendUrl: 'https://frontend.test/inspector.html?ws=localhost:9222/devtools/page/A1',
      devtoolsFrontendUrlCompat: 'https://frontend.test/compat.html?ws=localhost:9222/devtools/page/A1',
    };
    expect(throughDoor([page, page], base)).toEqual(
      Array(2).fill({ id: 'A1', webSocketDebuggerUrl: 'ws://127.0.0.1:4000/token/devtools/page/A1' }),
    );
  });

  it.each([
    'ws://evil.test/elsewhere',
    'wss://evil.test/devtools/page/A1',
    'ws://127.0.0.1:4000/devtools/page/../../x',
    'ws://127.0.0.1:4000/devtools/page/A1?x',
    'http://127.0.0.1:4000/devtools/page/A1',
    7,
    null,
  ])('[G12] that the sandbox made up are left out: %j', (webSocketDebuggerUrl) => {
    expect(throughDoor({ id: 'A1', webSocketDebuggerUrl }, base)).toEqual({ id: 'A1' });
  });

  it('[G12] of another host keep their path alone', () => {
    const moved = throughDoor({ webSocketDebuggerUrl: 'ws://evil.test/devtools/page/A1' }, base);
    expect(moved).toEqual({ webSocketDebuggerUrl: 'ws://127.0.0.1:4000/token/devtools/page/A1' });
    expect(throughDoor('text', base)).toBe('text');
  });

  it.each([
    ['/json', true],
    ['/json/', true],
    ['/json/list?x', true],
    ['/json/version/', true],
    ['/json/new?about:blank', true],
    ['/json/protocol', false],
    ['/json/close/A1', false],
    ['/devtools/page/A1', false],
  ])('are looked for in %s: %s', (path, expected) => {
    expect(isListing(path)).toBe(expected);
  });
});
