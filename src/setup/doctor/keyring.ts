/** Where values of secrets go on this machine. */

import { isSallyportError } from '../../protocol/errors.ts';
import { systemKeyring } from '../../store/keyring.ts';
import type { Check } from './check.ts';

export async function checkKeyring(platform: NodeJS.Platform): Promise<Check> {
  const check = { id: 'keyring', title: 'keyring for secrets' } as const;
  try {
    const answers = (await systemKeyring(platform)?.answers()) === true;
    const value = answers
      ? 'answers; new secrets go there'
      : 'none; secrets are kept in a file of their owner';
    return { ...check, status: 'ok', value };
  } catch (error) {
    if (!isSallyportError(error, 'keyring_unavailable')) throw error;
    return { ...check, status: 'warn', value: error.message, advice: error.advice };
  }
}
