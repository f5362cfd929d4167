/** Variables in a Dockerfile's words, in the forms that the builder knows in a FROM. Pure. */

const reference = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::([-+])([^}]*))?\})/g;

/** Undefined: a variable has no value, or a form that is not known is used. */
export function expandVariables(text: string, values: ReadonlyMap<string, string>): string | undefined {
  let isKnown = true;
  const expanded = text.replace(
    reference,
    (_, plain: string | undefined, braced: string | undefined, form: string | undefined, word = '') => {
      const value = values.get(plain ?? braced ?? '');
      const isSet = value !== undefined && value !== '';
      if (form === '-') return isSet ? value : word;
      if (form === '+') return isSet ? word : '';
      if (!isSet) isKnown = false;
      return value ?? '';
    },
  );
  return isKnown && !expanded.includes('$') ? expanded : undefined;
}
