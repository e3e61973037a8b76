# Completion of phalanx for bash: source <(phalanx completion bash)
_phalanx_runs() {
    local root=${XDG_STATE_HOME:-} file
    [[ $root == /* ]] || root=$HOME/.local/state
    echo last
    for file in "$root"/phalanx/runs/*.json; do
        file=${file##*/} file=${file%.json}
        [[ $file == *[.*]* ]] || echo "$file"
    done
}
_phalanx_options() {
    case $1 in
        run) echo '--workers --min-workers --max-workers --ps --chief --no-chief --evaluator --workers-per-host --gpus-per-worker --hosts --pin --no-pin --gpu-growth --no-gpu-growth --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --preflight --no-preflight --name --override --force-tf-config --context --namespace --detach --runs --quiet --json --help' ;;
        chaos) echo '--workers --min-workers --max-workers --ps --chief --no-chief --evaluator --workers-per-host --gpus-per-worker --hosts --pin --no-pin --gpu-growth --no-gpu-growth --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --preflight --no-preflight --name --override --force-tf-config --fault --count --seed --every --kinds --patience --reference --no-reference --compare --tolerance --runs --json --help' ;;
        plan) echo '--workers --min-workers --max-workers --ps --chief --no-chief --evaluator --workers-per-host --gpus-per-worker --hosts --pin --no-pin --gpu-growth --no-gpu-growth --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --preflight --no-preflight --name --override --force-tf-config --context --namespace --runs --json --detach --quiet --help' ;;
        preflight) echo '--workers --min-workers --max-workers --ps --chief --no-chief --evaluator --workers-per-host --gpus-per-worker --hosts --pin --no-pin --gpu-growth --no-gpu-growth --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --preflight --no-preflight --name --override --force-tf-config --runs --json --help' ;;
        advise) echo '--workers --ps --hosts --memory --cores --bandwidth --measure --through --probe-time --ports --save --measured --parameters --tables --ids --optimizer --batch --step --python --patience --json --help' ;;
        bench) echo '--workers --ps --steps --seconds --patience --python --json --help' ;;
        init) echo '--output -o --help' ;;
        import) echo '--output -o --name --force --json --help' ;;
        schema) echo '--help' ;;
        ps) echo '--all -a --running --json --on --context --namespace --help' ;;
        logs) echo '--follow -f --merged --since --err --out --generation --json --raw --on --context --namespace --help' ;;
        events) echo '--follow -f --json --help' ;;
        report) echo '--json --on --context --namespace --help' ;;
        attach) echo '--quiet --json --on --context --namespace --help' ;;
        stacks) echo '--json --help' ;;
        diagnose) echo '--json --help' ;;
        stop) echo '--now --wait --no-wait --on --context --namespace --help' ;;
        scale) echo '--on --context --namespace --help' ;;
        join) echo '--host --help' ;;
        render) echo '--workers --min-workers --max-workers --ps --chief --no-chief --evaluator --workers-per-host --gpus-per-worker --hosts --pin --no-pin --gpu-growth --no-gpu-growth --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --preflight --no-preflight --name --override --force-tf-config --output -o --namespace --static --own-key --help' ;;
        kubernetes) echo '--namespace --name --no-role --jobset --gang --help' ;;
        check) echo '--strategy --tf-version --expect-cluster --hosts --python --workers --chief --no-chief --ps --evaluator --ignore --format --json --fail-on --help' ;;
        explain) echo '--strategy --tf-version --json --width --ascii --help' ;;
        fix) echo '--strategy --in-place --fail-on --help' ;;
        agree) echo '--format --json --fail-on --help' ;;
        generate) echo '--workers --ps --chief --no-chief --evaluator --hosts --port --task --host --all --out --strategy --help' ;;
        completion) echo '--help' ;;
    esac
}
_phalanx_valued() {
    case $1 in
        run) [[ ' --workers --min-workers --max-workers --ps --workers-per-host --gpus-per-worker --hosts --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --name --context --namespace --runs ' == *" $2 "* ]] ;;
        chaos) [[ ' --workers --min-workers --max-workers --ps --workers-per-host --gpus-per-worker --hosts --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --name --fault --count --seed --every --kinds --patience --compare --tolerance --runs ' == *" $2 "* ]] ;;
        plan) [[ ' --workers --min-workers --max-workers --ps --workers-per-host --gpus-per-worker --hosts --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --name --context --namespace --runs ' == *" $2 "* ]] ;;
        preflight) [[ ' --workers --min-workers --max-workers --ps --workers-per-host --gpus-per-worker --hosts --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --name --runs ' == *" $2 "* ]] ;;
        advise) [[ ' --workers --ps --hosts --memory --cores --bandwidth --measure --through --probe-time --ports --save --measured --parameters --tables --ids --optimizer --batch --step --python --patience ' == *" $2 "* ]] ;;
        bench) [[ ' --workers --ps --steps --seconds --patience --python ' == *" $2 "* ]] ;;
        init) [[ ' --output -o ' == *" $2 "* ]] ;;
        import) [[ ' --output -o --name ' == *" $2 "* ]] ;;
        ps) [[ ' --on --context --namespace ' == *" $2 "* ]] ;;
        logs) [[ ' --since --generation --on --context --namespace ' == *" $2 "* ]] ;;
        report) [[ ' --on --context --namespace ' == *" $2 "* ]] ;;
        attach) [[ ' --on --context --namespace ' == *" $2 "* ]] ;;
        stop) [[ ' --on --context --namespace ' == *" $2 "* ]] ;;
        scale) [[ ' --on --context --namespace ' == *" $2 "* ]] ;;
        join) [[ ' --host ' == *" $2 "* ]] ;;
        render) [[ ' --workers --min-workers --max-workers --ps --workers-per-host --gpus-per-worker --hosts --on --image --python --ports --start-timeout --silence --hang --finish --max-restarts --standbys --strategy --keras --checkpoint --ignore-check --name --output -o --namespace ' == *" $2 "* ]] ;;
        kubernetes) [[ ' --namespace --name --gang ' == *" $2 "* ]] ;;
        check) [[ ' --strategy --tf-version --hosts --python --workers --ps --ignore --format --fail-on ' == *" $2 "* ]] ;;
        explain) [[ ' --strategy --tf-version --width ' == *" $2 "* ]] ;;
        fix) [[ ' --strategy --fail-on ' == *" $2 "* ]] ;;
        agree) [[ ' --format --fail-on ' == *" $2 "* ]] ;;
        generate) [[ ' --workers --ps --hosts --port --task --host --out --strategy ' == *" $2 "* ]] ;;
        *) return 1 ;;
    esac
}
_phalanx() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb= option= given=0 only= word known=
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ -z $verb ]]; then [[ $word == -* ]] || verb=$word
        elif [[ $word == = ]]; then :
        elif [[ -n $option ]]; then option=
        elif [[ $word == -- ]]; then only=1
        elif [[ -z $only && $word == -?* ]]; then if _phalanx_valued "$verb" "$word"; then option=$word; fi
        else
            given=$((given + 1))
            case $verb in run | chaos | plan | preflight | advise | bench | render) [[ $word == *.yaml || $word == *.yml || $word == *.json ]] || only=1 ;; esac
        fi
    done
    COMPREPLY=()
    [[ -n $option && $cur == = ]] && cur=
    if [[ -z $verb ]]; then known='--help --version run chaos plan preflight advise bench init import schema ps logs events report attach stacks diagnose stop scale join render kubernetes check explain fix agree generate completion'
    elif [[ -n $option ]]; then
        case "$verb $option" in
            "run --strategy") known='mwms ps estimator none auto' ;;
            "run --keras") known='auto legacy off' ;;
            "chaos --strategy") known='mwms ps estimator none auto' ;;
            "chaos --keras") known='auto legacy off' ;;
            "plan --strategy") known='mwms ps estimator none auto' ;;
            "plan --keras") known='auto legacy off' ;;
            "preflight --strategy") known='mwms ps estimator none auto' ;;
            "preflight --keras") known='auto legacy off' ;;
            "render --strategy") known='mwms ps estimator none auto' ;;
            "render --keras") known='auto legacy off' ;;
            "kubernetes --gang") known='volcano coscheduling' ;;
            "check --strategy") known='auto mwms ps estimator' ;;
            "check --format") known='text json github sarif' ;;
            "check --fail-on") known='error warning info never' ;;
            "explain --strategy") known='auto mwms ps estimator' ;;
            "fix --strategy") known='auto mwms ps estimator' ;;
            "fix --fail-on") known='error warning info never' ;;
            "agree --format") known='text json github sarif' ;;
            "agree --fail-on") known='error warning info never' ;;
            "generate --strategy") known='auto mwms ps estimator' ;;
            "run --python" | "run --checkpoint" | "run --runs" | "chaos --python" | "chaos --checkpoint" | "chaos --runs" | "plan --python" | "plan --checkpoint" | "plan --runs" | "preflight --python" | "preflight --checkpoint" | "preflight --runs" | "advise --save" | "advise --measured" | "advise --python" | "bench --python" | "init --output" | "init -o" | "import --output" | "import -o" | "render --python" | "render --checkpoint" | "render --output" | "render -o" | "check --python" | "generate --out") return 0 ;;
            *) compopt +o default +o bashdefault 2>/dev/null; return 0 ;;
        esac
    elif [[ -z $only && $cur == -* ]]; then known=$(_phalanx_options "$verb")
    else
        case $verb in
            ps | logs | events | report | attach | stacks | diagnose | stop | scale | join) [[ $verb != logs && $verb != stacks && $given -gt 0 ]] || known=$(_phalanx_runs) ;;
            kubernetes) known='rbac' ;;
            completion) known='bash zsh fish' ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "$known" -- "$cur")
}
complete -o bashdefault -o default -F _phalanx phalanx
