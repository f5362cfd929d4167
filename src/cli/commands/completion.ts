/** `sally completion`: scripts that ask the hidden verb `__complete`, so that they are never older than the program. */

import { SallyportError } from '../../protocol/errors.ts';
import { exitCode } from '../exit-codes.ts';
import { print } from '../output.ts';

const bash = `# bash completion of sally and sallyport
_sally_complete() {
  local IFS=$'\\n'
  COMPREPLY=($("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *: ]] && compopt -o nospace
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then compopt -o default; fi
}
complete -F _sally_complete sally sallyport`;

const zsh = `#compdef sally sallyport
_sally() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _sally sally sallyport`;

const fish = `# fish completion of sally and sallyport
function __sally_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c sally -a '(__sally_complete)'
complete -c sallyport -a '(__sally_complete)'`;

const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };

export function completionCommand(shell: string): number {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined) {
    throw new SallyportError('usage', `there is no completion for ${shell}`, {
      advice: 'Write bash, zsh or fish.',
    });
  }
  print(script);
  return exitCode.ok;
}
