/** What a browser gets from the daemon itself and not from a sandbox. Nothing of it is kept, framed or told to others. */

import type { ServerResponse } from 'node:http';

const plainHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/**
 * Not a redirection: the browser would count what follows as asked for by whoever had the link, and send no cookie that is
 * for this site alone.
 */
export function sendEntered(response: ServerResponse, cookie: string, path: string): void {
  const headers = { ...plainHeaders, 'content-type': 'text/html; charset=utf-8', 'set-cookie': cookie };
  const target = escaped(path);
  response.writeHead(200, headers);
  response.end(
    `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${target}"><title>Sallyport</title><p><a href="${target}">Go on</a>\n`,
  );
}

/** The connection ends with it: whoever is not let in holds no place of the port. */
export function sendWords(response: ServerResponse, status: number, words: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const headers = { ...plainHeaders, 'content-type': 'text/plain; charset=utf-8', connection: 'close' };
  response.writeHead(status, headers);
  response.end(`sally: ${words}\n`);
}

/** A page that leads to the link, for a file that only its owner can read. A command line can be read by everybody. */
export function launchPage(url: string): string {
  const target = escaped(url);
  return `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${target}"><title>Sallyport</title><p><a href="${target}">Open the preview</a>\n`;
}

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
