/** What went wrong with a file of a build context, by its path in it. */

import { TooManyHolesError } from '../../lib/hole-bound.ts';
import { FileChangedError } from '../../lib/host-tree.ts';
import { SallyportError } from '../../protocol/errors.ts';

const changedCodes: ReadonlySet<string> = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'ENXIO', 'EINVAL']);
const deniedCodes: ReadonlySet<string> = new Set(['EACCES', 'EPERM']);

const shown = (path: string): string => (path === '' ? 'the folder itself' : path);

export function contextFailure(path: string, cause: unknown): unknown {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (cause instanceof FileChangedError || changedCodes.has(code)) return contextChanged(path, cause);
  if (cause instanceof TooManyHolesError) {
    return new SallyportError('copy_too_large', `the build context cannot be read: ${cause.message}`, {
      details: { path },
      advice: 'Remove the file, or leave it out with a line in .dockerignore.',
      cause,
    });
  }
  if (!deniedCodes.has(code)) return cause;
  return new SallyportError(
    'dockerfile_invalid',
    `${shown(path)} is in the build context and cannot be read`,
    {
      details: { path: shown(path) },
      advice: 'Make it readable, or leave it out with a line in .dockerignore.',
      cause,
    },
  );
}

export function contextChanged(path: string, cause?: unknown): SallyportError {
  return new SallyportError('copy_changed', `${shown(path)} changed while the image was built of it`, {
    details: { path: shown(path) },
    advice:
      'Try again when nothing writes to the folder, or leave the file out with a line in .dockerignore.',
    cause,
  });
}

export function invalidName(path: string): SallyportError {
  return new SallyportError('dockerfile_invalid', `${JSON.stringify(path)} has a name that is no UTF-8`, {
    details: { path },
    advice: 'Rename the file, or leave it out with a line in .dockerignore.',
  });
}
