import type { Cli } from './context.ts';

const NAME = 'data-pipelines';
/** Hidden command with which the shell asks the program for proposals. */
export const COMPLETE = '__complete';

/** Each script falls back to file names when the program proposes nothing. */
const SCRIPTS = {
  bash: `_data_pipelines() {
  local line word="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS= read -r line; do
    case $word in [\\'\\"]*) ;; *) printf -v line %q "$line" ;; esac
    COMPREPLY+=("$line")
  done < <(${NAME} ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _data_pipelines ${NAME}`,
  zsh: `_data_pipelines() {
  local -a found
  found=(\${(f)"$(${NAME} ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -- $found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _data_pipelines ${NAME}`,
  fish: `function __data_pipelines
  set -l words (commandline -opc) (commandline -ct)
  set -l found (${NAME} ${COMPLETE} $words[2..-1] 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c ${NAME} -f -a '(__data_pipelines)'`,
};

export function printScript(cli: Cli, _flags: object, shell: keyof typeof SCRIPTS): void {
  cli.print(SCRIPTS[shell]);
}
