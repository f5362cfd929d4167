/**
 * The one strict reading of a host: what comes out is canonical, and everything later compares, resolves and dials that.
 * Whatever two programs could read in two ways is refused, never repaired.
 */

import { domainToASCII, domainToUnicode } from 'node:url';
import { formatAddress, parseAddress } from './address.ts';

/** The same as the gate's `Destination`. */
export interface CanonicalHost {
  /** A name in lower case without a dot at its end, or an address in its one written form, without brackets. */
  readonly host: string;
  readonly isAddress: boolean;
}

export interface HostProblem {
  readonly problem: string;
}

const mostNameCharacters = 253;
const mostLabelCharacters = 63;

/** An address of IPv6 stands in brackets, as in a URL. */
export function parseHost(text: string): CanonicalHost | HostProblem {
  if (text === '') return { problem: 'is empty' };
  if (text.length > mostNameCharacters + 1) return { problem: 'is longer than 253 characters' };
  const strange = strangeCharacter(text);
  if (strange !== undefined) return { problem: strange };
  if (text.startsWith('[')) return bracketed(text);
  const address = parseAddress(text);
  if (address?.family === 6) return { problem: 'is an IPv6 address without brackets' };
  if (address !== undefined) return { host: formatAddress(address), isAddress: true };
  return parseName(text.endsWith('.') ? text.slice(0, -1) : text);
}

/** As SOCKS and DNS bring it: without brackets. */
export function parseBareHost(text: string): CanonicalHost | HostProblem {
  const address = parseAddress(text);
  if (address !== undefined) return { host: formatAddress(address), isAddress: true };
  return text.includes(':') || text.includes('[')
    ? { problem: 'is no name and no address' }
    : parseHost(text);
}

/** Undefined: no port. `0443` and `+443` are none: another program may read another number. */
export function parsePort(text: string): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(text)) return undefined;
  const port = Number(text);
  return port > 65535 ? undefined : port;
}

/** `host:port`, as CONNECT and Host have it. Without a default the port must be there. */
export function parseAuthority(
  text: string,
  defaultPort?: number,
): (CanonicalHost & { readonly port: number }) | HostProblem {
  const [, hostText = '', portText] = /^(\[[^\]]*\]|[^:[\]]*)(?::(.*))?$/s.exec(text) ?? [];
  if (text !== '' && hostText === '') return { problem: 'is no host and port' };
  const host = parseHost(hostText);
  if ('problem' in host) return host;
  const port = portText === undefined ? defaultPort : parsePort(portText);
  if (port === undefined) {
    return {
      problem: portText === undefined ? 'has no port' : `has no port but ${JSON.stringify(portText)}`,
    };
  }
  return { ...host, port };
}

function strangeCharacter(text: string): string | undefined {
  if (text.includes('@')) return 'has user-info (@)';
  if (text.includes('%')) return 'has a percent sign';
  const found = /[^A-Za-z0-9.:[\]-]/.exec(text)?.[0];
  if (found === undefined) return undefined;
  const code = found.charCodeAt(0);
  const shown = code > 0x20 && code < 0x7f ? found : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return `has ${shown}, which is in no host name`;
}

function bracketed(text: string): CanonicalHost | HostProblem {
  const address = text.endsWith(']') ? parseAddress(text.slice(1, -1)) : undefined;
  if (address?.family !== 6) return { problem: 'has brackets around what is no IPv6 address' };
  return { host: formatAddress(address), isAddress: true };
}

function parseName(text: string): CanonicalHost | HostProblem {
  const host = text.toLowerCase();
  if (host.length > mostNameCharacters) return { problem: 'is longer than 253 characters' };
  const labels = host.split('.');
  for (const label of labels) {
    const problem = labelProblem(label);
    if (problem !== undefined) return { problem };
  }
  // Resolvers take what ends in a number for an address, each in its own way: 127.1, 0x7f.0.0.1, 2130706433.
  if (/^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')) {
    return { problem: 'is an address in a form that is not used here; write it as four decimal numbers' };
  }
  if (labels.some((label) => label.startsWith('xn--') && !isPunycode(label))) {
    return { problem: 'has a label in punycode that stands for nothing, or for something else' };
  }
  return { host, isAddress: false };
}

/** SECURITY: from Node.js 24 on `domainToASCII` passes a label that cannot be decoded, so the label is decoded and encoded. */
function isPunycode(label: string): boolean {
  const decoded = domainToUnicode(label);
  return /[^\0-\x7f]/.test(decoded) && domainToASCII(decoded) === label;
}

function labelProblem(label: string): string | undefined {
  if (label === '') return 'has an empty label';
  if (label.length > mostLabelCharacters) return 'has a label longer than 63 characters';
  if (!/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label)) return `has the label ${JSON.stringify(label)}`;
  if (label.slice(2, 4) === '--' && !label.startsWith('xn--')) {
    return `has the label ${JSON.stringify(label)}, whose hyphens are reserved`;
  }
  return undefined;
}
