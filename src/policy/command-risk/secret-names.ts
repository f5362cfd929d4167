/** Names of files that hold secrets in whatever folder they are, and searches that find one of them. Pure. */

import { expandBraces } from './braces.ts';
import { canBeHidden } from './globs.ts';

export const secretNames = [
  '.env .env.* .env~ .env_* .env-* *.env .envrc .flaskenv .dev.vars id_rsa id_dsa id_ecdsa id_ed25519 id_*_sk',
  'id_rsa.* id_dsa.* id_ecdsa.* id_ed25519.* *_rsa *_ed25519 .ssh .aws .gnupg .netrc .pgpass .npmrc .yarnrc.yml',
  '.git-credentials .htpasswd .vault-token .pypirc .dockercfg .kube kubeconfig .docker master.key credentials.json',
  'client_secret*.json service-account*.json service_account*.json secrets.y*ml secrets.toml secrets.json',
  'terraform.tfstate *.tfstate.backup *.tfvars wp-config.php *.key *.pem *.p8 *.p12 *.pfx *.jks *.keystore *.kdbx',
  '*.ovpn *.ppk krb5cc_*',
].flatMap((line) => line.split(' '));

const whole = [...secretNames.filter((name) => !name.includes('*')), '.env.local', '.env.production'];
const patterns = new Set(secretNames.filter((name) => name.includes('*')));

/** Names like those of secrets whose files hold none: examples, public keys, certificates. */
export const isExample = (name: string): boolean =>
  /[._-](example|sample|template|tmpl|dist|schema|defaults?|pub)$|^(example|sample|template)([._-]\w+)*\.env$|^(full)?(ca|cert|chain|public|pub)[\w.-]*\.pem$/.test(
    name,
  );

/** A search by this pattern finds such a file: its stars stand for a dot at the front as well, as in `find -name`. */
export function findsSecret(pattern: string): boolean {
  const choices = expandBraces(pattern) ?? [pattern];
  return choices.some((choice) =>
    choice
      .toLowerCase()
      .split('/')
      .some(
        (part) =>
          patterns.has(part) ||
          // `*` and `*.json` are everyday, and say nothing of a name.
          (!/^\*[*?]*(\.\w*)?$/.test(part) &&
            /\w/.test(part) &&
            !isExample(part) &&
            whole.some((name) => canBeHidden(part, name))),
      ),
  );
}

/** The same of an expression that may stand anywhere in the name. In doubt it finds one. */
export function matchesSecret(expression: string): boolean {
  if (!/\w\w/.test(expression)) return false;
  try {
    const found = new RegExp(expression, 'i');
    return whole.some((name) => found.test(name));
  } catch {
    return true;
  }
}

/** Patterns that a search is limited to. `--include=x`, `-g x`, the pathspecs of git, the tests of `find` with a command. */
export function searched(program: string, args: readonly { readonly text: string }[]): readonly string[] {
  const words = args.map(({ text }) => text);
  const behind = (names: RegExp): readonly string[] =>
    words.flatMap((word, at) => {
      const [, , value] = names.exec(word) ?? [];
      if (value === undefined) return [];
      return value === '' ? (words[at + 1] ?? []) : value.replace(/^=/, '');
    });
  if (/^[ef]?grep$/.test(program)) return behind(/^(--inc[a-z]*)(|=[\s\S]*)$/);
  if (program === 'rg')
    return behind(/^(--i?glob|-[a-zA-Z.]*g)(|[\s\S]*)$/).filter((each) => !each.startsWith('!'));
  if (program === 'git') return words.filter((word) => /[*?[]/.test(word) && !word.startsWith('-'));
  if (/^g?find$/.test(program) && words.some((word) => /^-(exec|ok)/.test(word))) return namedIn(words);
  return [];
}

/** Values of the tests for a name that find has to pass. */
export const namedIn = (words: readonly string[]): readonly string[] =>
  words.filter(
    (_, at) =>
      /^-i?(name|path|wholename)$/.test(words[at - 1] ?? '') && !/^(!|-not)$/.test(words[at - 2] ?? ''),
  );
