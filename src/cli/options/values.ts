/** Option values from the command line's words. What is wrong is said with how to write it; what it means is for others. */

import { InvalidArgumentError } from '@commander-js/extra-typings';
import { parseDuration } from '../../lib/durations.ts';
import { parseSize } from '../../lib/sizes.ts';

export function sizeValue(text: string): number {
  const bytes = parseSize(text);
  if (bytes === undefined || bytes === 0) throw new InvalidArgumentError('Write a size like 512m or 4g.');
  return bytes;
}

export function cpusValue(text: string): number {
  const cpus = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || cpus <= 0)
    throw new InvalidArgumentError('Write a number like 0.5 or 2.');
  return cpus;
}

export function countValue(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Write a whole number above zero.');
  return Number(text);
}

/** In milliseconds; `never` is 0, which the daemon takes for no limit. */
export function timeoutValue(text: string): number {
  return text === 'never' ? 0 : durationMs(text, ', or never');
}

export function graceValue(text: string): number {
  return text === '0' ? 0 : durationMs(text, ', or 0');
}

/** In milliseconds. */
export function durationValue(text: string): number {
  return durationMs(text, '');
}

/** Checked here, sent as it is written: a spec keeps the words of its author. */
export function lifetimeValue(text: string): string {
  if (text !== 'never') durationMs(text, ', or never');
  return text;
}

function durationMs(text: string, otherwise: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidArgumentError(`Write a duration like 30s, 5m or 1h30m${otherwise}.`);
}

export function modeValue(text: string): number {
  if (!/^0?[0-7]{1,4}$/.test(text)) throw new InvalidArgumentError('Write a mode like 644 or 0755.');
  return Number.parseInt(text, 8);
}

/** An option that may be given several times. */
export const collect = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

export const collectPorts = (text: string, before: readonly number[] = []): readonly number[] => [
  ...before,
  portValue(text),
];

export function portValue(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text) || Number(text) > 65535)
    throw new InvalidArgumentError('Write a port: 1 to 65535.');
  return Number(text);
}

/** In pixels. */
export function windowValue(text: string): { readonly width: number; readonly height: number } {
  const match = /^([1-9]\d{1,4})x([1-9]\d{1,4})$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Write a size like 1280x720.');
  return { width: Number(match[1]), height: Number(match[2]) };
}
