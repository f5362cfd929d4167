/** The first words on a link, both ways. */

import { SallyportError } from '../protocol/errors.ts';
import { type PayloadReader, PayloadWriter } from './payload.ts';

export const protocolMajor = 1;
const protocolMinor = 2;
/** Bits that porter tells of itself: docs/protocol.md, section 3. */
const treeLimitsBit = 1n;
const borrowsBit = 2n;
const readHolesBit = 4n;
/** What porter may have under way: on all streams together, and on one. */
export const connectionWindow = 512 * 1024;
export const streamWindow = 256 * 1024;
const maxBuildIdCharacters = 64;
/** From here on numbers of streams are porter's. */
export const firstPorterStream = 2 ** 31;
/** So many numbers are left to a host, or there is something wrong with the porter: an exec takes one. */
export const fewestStreams = 2 ** 24;

export interface PorterWelcome {
  readonly major: number;
  readonly minor: number;
  /** Takes limits with `get tree`, and sends holes as such. */
  readonly hasTreeLimits: boolean;
  /** Reads one file as extents. */
  readonly readsHoles: boolean;
  /** Programs get epoll and inotify instances from a lender, so that these do not count for the sandbox's uid. */
  readonly borrows: boolean;
  readonly buildId: string;
  readonly pid: number;
  /** How much input a stream takes before it gives credit. */
  readonly inputWindow: number;
  /** The highest stream number that a host has used: go on above it. */
  readonly highestStream: number;
}

export function greeting(token: Buffer): Buffer {
  return new PayloadWriter()
    .u16(protocolMajor)
    .u16(protocolMinor)
    .u64(0n)
    .u32(connectionWindow)
    .u32(streamWindow)
    .bytes(token)
    .end();
}

export function readWelcome(payload: PayloadReader): PorterWelcome {
  const major = payload.u16();
  const minor = payload.u16();
  if (major !== protocolMajor) throw versionError(major, minor);
  const features = payload.bigU64();
  const hasTreeLimits = (features & treeLimitsBit) !== 0n;
  const borrows = (features & borrowsBit) !== 0n;
  const readsHoles = (features & readHolesBit) !== 0n;
  const buildId = payload.text().slice(0, maxBuildIdCharacters);
  const pid = payload.u32();
  payload.u32();
  const inputWindow = payload.u32();
  const highestStream = payload.u32();
  payload.done();
  if (inputWindow === 0 || highestStream > firstPorterStream - fewestStreams) {
    throw new SallyportError('porter_protocol', 'the sandbox greeted with impossible numbers');
  }
  return {
    major,
    minor,
    hasTreeLimits,
    readsHoles,
    borrows,
    buildId,
    pid,
    // SECURITY: what a stream may have under way is held here until porter reads it.
    inputWindow: Math.min(inputWindow, streamWindow),
    highestStream,
  };
}

const refusedStaleEpoch = 5;

export function readRefusal(payload: PayloadReader): SallyportError {
  const major = payload.u16();
  const minor = payload.u16();
  if (major !== protocolMajor) return versionError(major, minor);
  const reason = payload.u32();
  const epoch = payload.u32();
  const text = payload.text().slice(0, 200);
  if (reason === refusedStaleEpoch) {
    return new SallyportError('porter_superseded', 'a newer host holds this sandbox', { details: { epoch } });
  }
  return new SallyportError('porter_protocol', `porter refused the connection: ${text}`, {
    details: { reason },
  });
}

function versionError(major: number, minor: number): SallyportError {
  return new SallyportError(
    'porter_version',
    `the sandbox speaks porter protocol ${major}.${minor}, not ${protocolMajor}.x`,
  );
}
