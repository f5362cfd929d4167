#pragma once

/* `porter through HOST PORT`: standard input and output become a connection by way of the gate, for programs that have no proxy setting
   of their own and can run a command for a connection, as ssh can. It asks the proxy of the sandbox (CONNECT), so the gate judges it as
   any other; a refusal is printed with its reason. */
int through_main(int count, char **words);
