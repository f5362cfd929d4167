/**
 * Expressions that bash evaluates as numbers. SECURITY: it takes the value of a name for an expression again, and a subscript
 * in it for text to be expanded, so `x='a[$(id)]'; echo $((x))` runs `id`. Only numbers, operators and names whose values
 * are numbers run nothing. Pure.
 */

import type { ArithmeticExpression, Word, WordPart } from 'unbash';
import { isNumeric } from './outputs.ts';
import type { Variables } from './variables.ts';

const number = /^(0[xX][0-9a-fA-F]+|\d+#[0-9a-zA-Z@_]+|\d+)$/;
const name = /^[A-Za-z_]\w*$/;

export function runsNothing(node: ArithmeticExpression | undefined, variables: Variables): boolean {
  if (node === undefined) return true;
  switch (node.type) {
    case 'ArithmeticBinary':
      return runsNothing(node.left, variables) && runsNothing(node.right, variables);
    case 'ArithmeticUnary':
      return runsNothing(node.operand, variables);
    case 'ArithmeticTernary':
      return [node.test, node.consequent, node.alternate].every((each) => runsNothing(each, variables));
    case 'ArithmeticGroup':
      return runsNothing(node.expression, variables);
    case 'ArithmeticCommandExpansion':
      return node.script !== undefined && isNumeric(node.script);
    case 'ArithmeticWord':
      return node.parts === undefined || node.parts.length === 0
        ? isPlain(node.value, variables)
        : node.parts.every((part) => isPlainPart(part, variables));
  }
}

/** A word that is evaluated: an operand of `-eq` in `[[ ]]`, a subscript, an offset of a slice. */
export function wordRunsNothing(word: Word, variables: Variables): boolean {
  if (word.parts !== undefined && word.parts.length > 0)
    return word.parts.every((part) => isPlainPart(part, variables));
  return isPlainText(word.value, variables);
}

/** Text of an expression without quotes or expansions. */
export function isPlainText(text: string, variables: Variables): boolean {
  if (/[[\]$`'"\\]/.test(text)) return false;
  return text
    .split(/[^\w#@]+/)
    .filter((each) => each !== '')
    .every((each) => isPlain(each, variables));
}

const isPlain = (text: string, variables: Variables): boolean =>
  number.test(text) || (name.test(text) && variables.isNumber(text));

function isPlainPart(part: WordPart, variables: Variables): boolean {
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
      return isPlainText(part.value, variables);
    case 'DoubleQuoted':
      return part.parts.every((each) => isPlainPart(each, variables));
    case 'ArithmeticExpansion':
      return runsNothing(part.expression, variables);
    case 'CommandExpansion':
      return part.script !== undefined && isNumeric(part.script);
    case 'SimpleExpansion':
      return (
        /^\$[#?$!]$/.test(part.text) ||
        (name.test(part.text.slice(1)) && variables.isNumber(part.text.slice(1)))
      );
    case 'ParameterExpansion':
      if (part.prefix === '#') return true;
      return (
        part.prefix === undefined &&
        part.operation === undefined &&
        part.index === undefined &&
        variables.isNumber(part.parameter)
      );
    default:
      return false;
  }
}
