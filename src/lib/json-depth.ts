/**
 * Whether a JSON text is nested more deeply than any message of ours. Parsing takes time and memory by the depth: 16 MB of brackets
 * hold up the event loop for seconds. Looking at each byte takes milliseconds.
 */

const [quote, backslash] = [0x22, 0x5c];
const opening = new Set([0x5b, 0x7b]);
const closing = new Set([0x5d, 0x7d]);

/** Of text that is no JSON it says something or other; the parser refuses that. */
export function isDeeperThan(most: number, json: Uint8Array): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] ?? 0;
    if (byte === quote) isInString = !isInString;
    else if (isInString) at += byte === backslash ? 1 : 0;
    else if (opening.has(byte) && ++depth > most) return true;
    else if (closing.has(byte)) depth--;
  }
  return false;
}
