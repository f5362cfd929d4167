/**
 * Looks whether an image keeps what it promises: its marker is there, and each line of its smoke test succeeds, inside a
 * container that is hardened as a sandbox is and runs as a sandbox's user. A program that is there and does not start is
 * not there.
 */

import { randomBytes } from 'node:crypto';
import { hardenedBox } from '../policy/hardening.ts';
import { isSallyportError } from '../protocol/errors.ts';
import { label, ownedLabels } from '../protocol/labels.ts';
import type { ImageEngine } from '../sandboxes/ports.ts';
import { provisionMarker } from './provision.ts';

/** One line that hangs must not use up the time of the others. */
const lineSeconds = 90;
const timeoutMs = 300_000;
/** Made by provision.sh. */
const imageUser = { uid: 1000, gid: 1000 };

export interface PromiseCheck {
  readonly image: string;
  /** `own`: those that the image itself says, where nobody else knows. */
  readonly promises: readonly string[] | 'own';
  /** False before the marker is put in. */
  readonly marker: boolean;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What is not kept, each in a line for people; empty when all is. */
export async function checkPromises(engine: ImageEngine, check: PromiseCheck): Promise<readonly string[]> {
  const nonce = randomBytes(12).toString('hex');
  const hardened = hardenedBox({
    name: `sallyport-check-${nonce}`,
    image: check.image,
    porterVolume: '',
    labels: { ...ownedLabels('image-check'), ...check.labels, [label.base]: check.image },
    // Nobody finds it again if this process is killed.
    endsWithHost: true,
    env: { HOME: '/home/sally' },
  });
  // The image's own user: the entry of a sandbox's is put in later, for each sandbox.
  const box = { ...hardened, user: imageUser, workingDir: '/' };
  const promises = check.promises === 'own' ? [] : check.promises;
  const source = check.promises === 'own' ? 'own' : 'given';
  const marker = check.marker ? provisionMarker : '-';
  try {
    const output = await engine.tryOut(
      box,
      ['/bin/sh', '-c', script, 'sh', nonce, marker, source, ...promises],
      {
        timeoutMs,
        ...(check.signal === undefined ? {} : { signal: check.signal }),
      },
    );
    return readReport(output, nonce);
  } catch (error) {
    // An image without a shell, or with half of its libraries, cannot even begin.
    if (isSallyportError(error, 'engine_failed') || isSallyportError(error, 'engine_not_found'))
      return [`nothing could be started: ${error.message}`];
    if (isSallyportError(error, 'engine_timeout')) return [error.message];
    if (isSallyportError(error, 'engine_conflict') || isSallyportError(error, 'engine_protocol'))
      return [`nothing could be started: ${error.message}`];
    throw error;
  }
}

/** Written for the smallest shells. `timeout` may be one of the things that are missing. */
const script = `
nonce=$1 marker=$2 source=$3
shift 3
limit=
command -v timeout >/dev/null 2>&1 && limit='timeout -k 5 ${lineSeconds}'
try() {
  said=$($limit sh -c "$1" 2>&1 </dev/null) && return
  last=$(printf '%s\\n' "$said" | tail -n 1)
  printf '%s failed: %s (%.300s)\\n' "$nonce" "$1" "$last"
}
[ "$marker" = - ] || [ -f "$marker" ] || printf '%s failed: the marker %s is missing\\n' "$nonce" "$marker"
if [ "$source" = own ]; then
  own=/opt/sallyport/smoke.txt
  [ -s "$own" ] || printf '%s failed: the image has no list of its promises\\n' "$nonce"
  while read -r line; do
    case $line in '' | '#'*) continue ;; esac
    try "$line"
  done <"$own"
else
  for line in "$@"; do try "$line"; done
fi
printf '%s done\\n' "$nonce"
`;

function readReport(output: string, nonce: string): readonly string[] {
  const said = output
    .split('\n')
    .filter((line) => line.startsWith(`${nonce} `))
    .map((line) => line.slice(nonce.length + 1));
  const failed = said.filter((line) => line.startsWith('failed: ')).map((line) => line.slice(8));
  if (said.at(-1) === 'done') return failed;
  return [...failed, 'the checks ended before all were done'];
}
