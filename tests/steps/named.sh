# shellcheck shell=bash
# ./dev test NAME...: the C tests, Rust tests and steps whose names have NAME in them.

# As tests are called: tests/behaviour/test_model_edit.c is behaviour.model_edit,
# c/testing/tests/test_sim.c testing.sim.
test_name() { # NAME|FILE
    local name=$1
    if [[ ${name/\/tests\//\/} =~ ([^/]+)/test_([^/]+)\.c$ ]]; then
        echo "${BASH_REMATCH[1]}.${BASH_REMATCH[2]}"
        return
    fi
    case $name in *.c | *.rs) name=${name##*/} name=${name%.*} ;; esac
    echo "${name#test_}"
}

# For ctest, which takes regular expressions.
literal() { # TEXT
    printf '%s\n' "$1" | sed 's/[][\.*^$+?()|]/\\&/g'
}

# Of a file its own tests, not those that go on with its name.
c_pattern() { # NAME|FILE
    local name
    name=$(literal "$(test_name "$1")")
    case $1 in *.c) [[ $name == *.* ]] || name="\\.$name"; name+='(\.|$)' ;; esac
    echo "$name"
}

build_names_of_tests() { told cmake --preset debug -B "$build/debug" $gcc $net "${cuda_options[@]}"; }

has_c_tests() { # PATTERN
    ctest --test-dir "$build/debug" -N -R "$1" | grep '^ *Test *#' >/dev/null
}

# Builds what the tests run, and runs them.
run_c_tests() { # PATTERN
    local pattern=$1 targets
    targets=$(python3 tests/steps/programs.py "$build/debug" "$pattern")
    if [ -n "$targets" ]; then
        # shellcheck disable=SC2086 # several
        told cmake --build "$build/debug" -j "$jobs" --target $targets
    fi
    run_ctest SYNCBLOB_TEST_WHOLE=1 debug -R "$pattern"
}

# Those of a file, also where a macro's call has them.
rust_functions() { # FILE
    awk '/^ *#\[test\]/ { told = 1 }
        told && match($0, /^ *fn [a-z0-9_]+/) { print substr($0, RSTART + 3, RLENGTH - 3); told = 0 }' "$1"
}

# "CRATE TARGET [FUNCTION]": a whole file of integration tests where its name fits, else those
# functions whose names do, or whose module's does.
rust_tests() { # NAME
    local file crate program
    for file in bindings/*/tests/*.rs; do
        crate=${file#bindings/} crate=${crate%%/*} program=${file##*/} program=${program%.rs}
        if [[ $program == *"$1"* ]]; then
            echo "$crate --test=$program"
        elif rust_functions "$file" | grep -F -e "$1" >/dev/null; then
            echo "$crate --test=$program $1"
        fi
    done
    grep -rl '#\[test\]' bindings/*/src | while read -r file; do
        crate=${file#bindings/} crate=${crate%%/*} program=${file##*/} program=${program%.rs}
        if { echo "$program" && rust_functions "$file"; } | grep -F -e "$1" >/dev/null; then
            [ -e "bindings/$crate/src/lib.rs" ] && echo "$crate --lib $1" || echo "$crate --bins $1"
        fi
    done | sort -u
}

# Of the workspace: its members turn on the features that tests need. A file or a function that no
# feature lets in has not passed.
run_rust_tests() { # TARGET FUNCTION
    local said status=0
    said=$(told cargo test --locked --workspace "$1" -- "$2" 2>&1) || status=$?
    printf '%s\n' "$said"
    [ $status = 0 ] || return $status
    grep -q '^test .* \.\.\. ok' <<<"$said" || { echo 'error: no test of this name has run'; return 1; }
}

# The steps of --full alone where the others have none of this name.
run_steps_named() { # NAME
    only=("$1")
    local lists=(test_steps more_steps)
    plan "${lists[@]}"
    if [ "$steps_wanted" = 0 ]; then
        lists=(full_steps)
        plan "${lists[@]}"
    fi
    if [ "$steps_wanted" != 0 ]; then
        found=1
        run_lists "${lists[@]}"
    fi
    only=()
}

report_none() { # WORD
    local story="nothing is named like '$1': ctest -N, cargo test and ./dev test list the names"
    echo "FAILED  $story"
    step_stories+=("$story")
    failed=$((failed + 1))
}

run_named() { # NAME...
    local word name pattern found crate target function
    make_once names_of_tests "$1"
    for word in "$@"; do
        name=$(test_name "$word")
        pattern=$(c_pattern "$word")
        found=
        if [[ $word != *.rs ]] && [ "${built[names_of_tests]}" = 0 ] && has_c_tests "$pattern"; then
            step "C tests: $name" run_c_tests "$pattern"
            found=1
        fi
        while read -r crate target function; do
            step "Rust tests: $crate ${target#--test=}${function:+ $function}" \
                run_rust_tests "$target" "$function"
            found=1
        done < <([[ $word == *.c ]] || rust_tests "$name")
        [[ $word == *.rs || $word == *.c ]] || run_steps_named "$name"
        settle
        [ -n "$found" ] || [ "${built[names_of_tests]}" != 0 ] || report_none "$word"
    done
}
