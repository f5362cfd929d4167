#pragma once

/* `porter show FILE...`: prints files, for images that have no program to do it. It is run as any command of the sandbox is, so
   that what it finds below /proc/self is what every command gets. Before each file a line "== PATH", with " +" if it opened. For an argument "@PATH" the content is a line
   with device, inode number, time of the last change of the inode in nanoseconds and mode of what is there; links are not followed. */
int show_main(int count, char **paths);
