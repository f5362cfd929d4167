/** The allow-lists of curl and wget: plain requests to plain addresses, and where the answer is written. */

import { isProtectedText } from '../protected-writes.ts';
import type { Arg } from '../words.ts';
import { readCall } from './option-list.ts';
import { type Allowed, optionList, refused } from './verdict.ts';

export const curl: Allowed = (call) => {
  const { problem, operands, values, names, written } = readCall(
    call,
    optionList(
      '-sSLfIivkgGNqj046OR -o> -H: -A: -e: -m: -w: -r: -X: -y: -Y: -z: --silent --show-error --location --fail --fail-with-body --fail-early --head --include --verbose --insecure --globoff --compressed --no-buffer --ipv4 --ipv6 --http1.1 --http2 --http3 --tlsv1.2 --tlsv1.3 --progress-bar --no-progress-meter --output> --output-dir> --create-dirs --remote-name --header: --user-agent: --referer: --max-time: --connect-timeout: --write-out: --range: --request: --retry: --retry-delay: --retry-all-errors --retry-connrefused --retry-max-time: --max-redirs: --limit-rate: --url: --parallel --ssl-reqd --proto: --remove-on-error --styled-output --no-styled-output text',
    ),
  );
  if (problem !== undefined) return { problem };
  for (const [name, value] of values) {
    if (
      /^(H|header|w|write-out|A|user-agent|e|referer)$/.test(name) &&
      (/^@|%output\{/.test(value.text) || !value.known)
    )
      return refused('a value that curl takes from a file, or writes to one', value);
  }
  const method = values.get('X') ?? values.get('request');
  if (method !== undefined && !/^(GET|HEAD|OPTIONS)$/.test(method.text))
    return refused('a request that changes something there', method);
  const numbered = written.find(({ text }) => text.includes('#'));
  if (numbered !== undefined) return refused('a name that the address decides', numbered);
  if (written.length > 0) call.writes(written);
  const url = values.get('url');
  const addresses = url === undefined ? operands : [...operands, url];
  const strange = addresses.find((arg) => !isPlainAddress(arg));
  if (strange !== undefined) return refused('an address that is not plain http', strange);
  if (names.has('O') || names.has('remote-name')) {
    // Braces and brackets are patterns of curl's own.
    const target = addresses.find(({ text }) => isProtectedText(lastName(text)) || /[{[]/.test(text));
    if (target !== undefined) return refused('a file that other programs execute', target);
  }
  return {};
};

/** As it becomes the name of a file. */
export const lastName = (address: string): string =>
  ((address.split(/[?#]/)[0] ?? '').split('/').at(-1) ?? '').replace(
    /%([0-9a-f]{2})/gi,
    (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)),
  );

/** http or https to a name or a plain address; never the service that hands out a machine's credentials. */
function isPlainAddress({ text, known }: Arg): boolean {
  if (!known) return false;
  const host = /^(?:https?:\/\/)?([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(?::\d+)?(?:[/?#]\S*)?$/i
    .exec(text)?.[1]
    ?.toLowerCase();
  if (host === undefined || /^-/.test(host)) return false;
  if (/^169\.254\.|^100\.100\.100\.200$|metadata|^\[?fd00:|^\[::ffff|^instance-data/.test(host)) return false;
  const isNumeric = /^(0x[0-9a-f]+|[0-9]+)(\.(0x[0-9a-f]+|[0-9]+))*$/.test(host);
  return !isNumeric || /^([1-9]\d{0,2}|0)(\.([1-9]\d{0,2}|0)){3}$/.test(host);
}

export const wget: Allowed = (call) => {
  const { problem, operands, values, written } = readCall(
    call,
    optionList(
      '-qcNvS46 -nv -O> -P> -T: -t: -U: -w: --quiet --no-verbose --continue --timestamping --timeout: --tries: --output-document> --directory-prefix> --spider --no-check-certificate --server-response --user-agent: --show-progress --max-redirect: --no-clobber --header: text',
    ),
  );
  if (problem !== undefined) return { problem };
  const files = written.filter(({ text }) => text !== '-');
  if (files.length > 0) call.writes(files);
  const strange = operands.find((arg) => !isPlainAddress(arg));
  if (strange !== undefined) return refused('an address that is not plain http', strange);
  const target = operands.find(({ text }) => isProtectedText(lastName(text)));
  if (target !== undefined && !values.has('O') && !values.has('output-document'))
    return refused('a file that other programs execute', target);
  return {};
};
