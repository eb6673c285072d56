# Runs PROGRAM (syncblob) to write its manual, compressed by GZIP, and its completions into OUT.
function(write file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1)
foreach(shell IN ITEMS bash zsh fish)
  write(syncblob.${shell} completions ${shell})
endforeach()

write(man1/syncblob.1 man)
file(STRINGS ${OUT}/man1/syncblob.1 commands REGEX "^syncblob\\\\-[a-z]+\\(1\\)$")
list(TRANSFORM commands REPLACE "^syncblob\\\\-([a-z]+)\\(1\\)$" "\\1")
foreach(command IN LISTS commands)
  write(man1/syncblob-${command}.1 man ${command})
endforeach()

file(GLOB pages ${OUT}/man1/*.1)
execute_process(COMMAND ${GZIP} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
