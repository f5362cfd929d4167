/** Parts of the shell's language that run code where no command stands: subscripts, numbers, indirect names, names that are set. */

import type { Command, ParameterExpansionPart, SyntaxNode } from 'unbash';
import { runsNothing, wordRunsNothing } from './arithmetic.ts';
import { whySteers } from './steering.ts';
import type { Variables } from './variables.ts';

const evaluates = 'bash evaluates a value here, and a subscript in it runs code';

/** Why this node alone may run code; undefined: it does not. */
export function whyRuns(node: SyntaxNode, variables: Variables): string | undefined {
  switch (node.type) {
    case 'ArithmeticExpansion':
    case 'ArithmeticCommand':
      if (node.expression === undefined)
        return /^\$?\(*\s*\)*$/.test('text' in node ? node.text : node.body) ? undefined : evaluates;
      return runsNothing(node.expression, variables)
        ? (steeringTarget(node.expression) ?? undefined)
        : evaluates;
    case 'ArithmeticFor': {
      const all = [node.initialize, node.test, node.update];
      if (!all.every((each) => runsNothing(each, variables))) return evaluates;
      return all
        .map((each) => (each === undefined ? undefined : steeringTarget(each)))
        .find((why) => why !== undefined);
    }
    case 'TestBinary':
      return /^-(eq|ne|lt|le|gt|ge)$/.test(node.operator) &&
        !(wordRunsNothing(node.left, variables) && wordRunsNothing(node.right, variables))
        ? evaluates
        : undefined;
    case 'TestUnary':
      return /^-[vR]$/.test(node.operator) && !/^[A-Za-z_]\w*$/.test(node.operand.text)
        ? evaluates
        : undefined;
    case 'Assignment':
      return node.index !== undefined && !isPlainIndex(node.index.text, variables) ? evaluates : undefined;
    case 'ArrayValue':
      return node.elements.some(({ text }) => !isPlainElement(text, variables)) ? evaluates : undefined;
    case 'For':
    case 'Select':
      return whySteers(node.name.value, { exported: false });
    case 'Coproc':
      return node.name === undefined ? undefined : whySteers(node.name.value, { exported: false });
    case 'FileDescriptorVariable':
      return whySteers(node.name, { exported: false });
    case 'ParameterExpansion':
      return parameterRuns(node, variables);
    case 'Command':
      return declarationRuns(node, variables);
    default:
      return undefined;
  }
}

/** `declare -a a="$x"`, and `declare a="$x"` where a is an array: the value is read as `(…)`, with what it expands. */
function declarationRuns(node: Command, variables: Variables): string | undefined {
  if (!/^(declare|typeset|local|readonly|export)$/.test(node.name?.value ?? '')) return undefined;
  const isArray = node.args.some((arg) => arg.type === 'Word' && /^-[a-zA-Z]*[aA]/.test(arg.value));
  const runs = node.args.some((arg) => {
    if (arg.type === 'Word') {
      const [, name = '', value] = /^([A-Za-z_]\w*)\+?=([\s\S]*)$/.exec(arg.value) ?? [];
      return value !== undefined && mayBeList(value) && (isArray || variables.isArray(name));
    }
    return (
      arg.value.type === 'Word' && mayBeList(arg.value.value) && (isArray || variables.isArray(arg.name))
    );
  });
  return runs ? evaluates : undefined;
}

const mayBeList = (value: string): boolean => /^[\s"'\\]*\(|[$`]/.test(value);

/** SECURITY: of an array that is not declared with -A the value of a name is evaluated, too. */
const isPlainIndex = (text: string, variables: Variables): boolean =>
  /^(@|\*|\d+|-\d+|[A-Za-z_][\w.-]*|"[\w .-]+"|'[\w .-]+')?$/.test(text) &&
  (text.match(/[A-Za-z_]\w*/g) ?? []).every((name) => variables.isHarmlessIndex(name));

const isPlainElement = (text: string, variables: Variables): boolean => {
  const index = /^\[([\w.-]+)\]\+?=/.exec(text)?.[1];
  return index === undefined ? !text.startsWith('[') : isPlainIndex(index, variables);
};

function parameterRuns(node: ParameterExpansionPart, variables: Variables): string | undefined {
  const { prefix, index, operation, parameter } = node;
  const isPlain = index === undefined || isPlainIndex(index.text, variables);
  if (!isPlain && !wordRunsNothing(index, variables)) return evaluates;
  // ${!name[@]} and ${!name*} are lists of subscripts and of names; ${!name} is a value that is taken for a name.
  if (prefix === '!' && !/^[@*]$/.test(index?.text ?? '') && operation?.type !== 'Names')
    return 'a value is taken for the name of another variable';
  switch (operation?.type) {
    case 'Transform':
      return /^[QUuLEaKk]$/.test(operation.operand.text)
        ? undefined
        : 'the value is expanded like a prompt, and runs code';
    case 'Slice':
      return [operation.offset, operation.length].every(
        (each) => each === undefined || wordRunsNothing(each, variables),
      )
        ? undefined
        : evaluates;
    case 'Default':
      return /=/.test(operation.operator) ? whySteers(parameter, { exported: false }) : undefined;
    case 'Unknown':
      return 'an expansion that is not known here';
    default:
      return undefined;
  }
}

/** `((PATH=1))` sets a name as well. */
function steeringTarget(node: import('unbash').ArithmeticExpression): string | undefined {
  switch (node.type) {
    case 'ArithmeticBinary': {
      const isSet = /=$/.test(node.operator) && !/^([<>=!]=)$/.test(node.operator);
      const own =
        isSet && node.left.type === 'ArithmeticWord'
          ? whySteers(node.left.value, { exported: false })
          : undefined;
      return own ?? steeringTarget(node.left) ?? steeringTarget(node.right);
    }
    case 'ArithmeticUnary':
      return node.operand.type === 'ArithmeticWord' && /^(\+\+|--)$/.test(node.operator)
        ? whySteers(node.operand.value, { exported: false })
        : steeringTarget(node.operand);
    case 'ArithmeticTernary':
      return steeringTarget(node.test) ?? steeringTarget(node.consequent) ?? steeringTarget(node.alternate);
    case 'ArithmeticGroup':
      return steeringTarget(node.expression);
    default:
      return undefined;
  }
}
