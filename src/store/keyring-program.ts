/**
 * The words by which the system's keyring is asked, as data: `secret-tool` of libsecret on Linux, `security` on macOS. A value
 * goes over standard input and is never an argument, because others can read a command line.
 */

export interface KeyringCall {
  readonly args: readonly string[];
  /** For its standard input. */
  readonly input?: string;
}

export interface KeyringProgram {
  readonly program: string;
  /** Ends with 0 where a keyring answers, whether it is locked or not. Asks nobody for a password. */
  readonly probe: KeyringCall;
  keep(item: string, label: string, value: string): KeyringCall;
  /** Prints the value, and nothing where there is none; may ask the user to unlock. */
  read(item: string): KeyringCall;
  /** Prints something where there is such an item, also in a locked keyring. SECURITY: it may be the value. */
  look(item: string): KeyringCall;
  forget(item: string): KeyringCall;
}

const application = 'sallyport';

const attributes = (item: string): readonly string[] => ['application', application, 'item', item];

const secretTool: KeyringProgram = {
  program: 'secret-tool',
  probe: { args: ['search', ...attributes('none')] },
  keep: (item, label, value) => ({
    args: ['store', `--label=${label}`, ...attributes(item)],
    input: value,
  }),
  read: (item) => ({ args: ['lookup', ...attributes(item)] }),
  look: (item) => ({ args: ['search', ...attributes(item)] }),
  forget: (item) => ({ args: ['clear', ...attributes(item)] }),
};

const named = (item: string): readonly string[] => ['-s', application, '-a', item];

const security: KeyringProgram = {
  program: 'security',
  probe: { args: ['default-keychain'] },
  // In its interactive mode it reads its commands. As hexadecimal digits no character of the value means anything to it.
  keep: (item, label, value) => ({
    args: ['-i'],
    input: `add-generic-password -U ${named(item).join(' ')} -l ${JSON.stringify(label)} -X ${Buffer.from(value, 'latin1').toString('hex')}\n`,
  }),
  read: (item) => ({ args: ['find-generic-password', '-w', ...named(item)] }),
  look: (item) => ({ args: ['find-generic-password', ...named(item)] }),
  forget: (item) => ({ args: ['delete-generic-password', ...named(item)] }),
};

export function keyringProgram(platform: NodeJS.Platform): KeyringProgram | undefined {
  switch (platform) {
    case 'linux':
      return secretTool;
    case 'darwin':
      return security;
    default:
      return undefined;
  }
}
