#compdef phalanx
# Completion of phalanx for zsh: source <(phalanx completion zsh), or as _phalanx in a folder of $fpath
_phalanx_runs() {
    local root=${XDG_STATE_HOME:-}
    [[ $root == /* ]] || root=$HOME/.local/state
    local -a runs=(last $root/phalanx/runs/*.json(N:t:r))
    compadd -- ${runs:#*.*}
}
_phalanx() {
    local -a verbs=(
        'run:Train: start one program as a cluster on this machine and follow it to its end.'
        'chaos:Hurt a run on purpose, and say how it took that.'
        'plan:Show what `run` would start: cluster, tasks, addresses, interpreter, environment.'
        'preflight:Look at everything that would stop a run, and start nothing.'
        'advise:Say which strategy fits a training, what it needs and how fast it goes.'
        'bench:Run a script for some steps at several sizes, beside what was reckoned.'
        'init:Write a commented job.yaml for a script.'
        'import:Write the job.yaml of a TFJob, a Volcano Job, or pods with a hand-written TF_CONFIG.'
        'schema:Print the JSON Schema of job.yaml, for editors.'
        'ps:List runs and their tasks.'
        'logs:Print what tasks have written.'
        'events:Print what has happened in a run.'
        'report:Say how a run ended, why, and what to do next.'
        'attach:Follow a run that goes on elsewhere.'
        'stacks:Print where each task is: what its threads do now.'
        'diagnose:Say where the time of a run goes, and who makes it slow.'
        'stop:End a run: TERM, a grace, KILL.'
        'scale:Give a run another number of workers.'
        'join:Bring one more host to a run.'
        'render:Write a job as manifests, for Git and `kubectl apply`.'
        'kubernetes:Print the Role that a client needs.'
        'check:Find what is wrong with a script or a TF_CONFIG before TensorFlow hangs on it.'
        'explain:Say in plain words what a TF_CONFIG means.'
        'fix:Print a TF_CONFIG without the faults that have one right answer.'
        'agree:Compare the TF_CONFIGs of several nodes.'
        'generate:Write the TF_CONFIG of one task or of all.'
        'completion:Print the completion script for bash, zsh or fish.'
    )
    if (( CURRENT == 2 )); then
        _describe -t verbs verb verbs
        return
    fi
    local verb=$words[2]
    shift words
    (( CURRENT-- ))
    case $verb in
        run) _arguments -s -A '-*' : \
            '--workers=[How many workers (1)]:value: ' \
            '--min-workers=[The fewest workers to go on with (--workers)]:value: ' \
            '--max-workers=[The most workers to grow to (--workers)]:value: ' \
            '--ps=[How many parameter servers (0); implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator beside the cluster]' \
            '--workers-per-host=[At most this many workers on a host (evenly spread)]:value: ' \
            '--gpus-per-worker=[GPUs each worker may see (all); 0 hides them]:value: ' \
            '--hosts=[Hosts to start on (1); on one machine they are simulated]:value: ' \
            '--pin[Cores of its own for each task of a host, or not]' \
            '--no-pin[Cores of its own for each task of a host, or not]' \
            '--gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--no-gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--on=[The engine (local)]:value: ' \
            '--image=[The container image, for Kubernetes]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--ports=[Take ports from A-B only]:value: ' \
            '--start-timeout=[Until every task must listen (5m)]:value: ' \
            '--silence=[Without any sign of life, a task is stuck (2m, 0 never)]:value: ' \
            '--hang=[Without a step while others wait, a task hangs (10m, 0 never)]:value: ' \
            '--finish=[After the first task'\''s good end, time for the others (10m)]:value: ' \
            '--max-restarts=[Restarts after failures of one kind (3); 0\: none]:value: ' \
            '--standbys=[Ready interpreters a host keeps for a restart (one a task)]:value: ' \
            '--strategy=[What the script builds (auto)]:value:(mwms ps estimator none auto)' \
            '--keras=[Keras 3\: mended where it fails (auto), tf_keras instead (legacy), left as it is (off)]:value:(auto legacy off)' \
            '--checkpoint=[Folder of checkpoints, {checkpoint} in the command]:file:_files' \
            '--ignore-check=[A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated)]:value: ' \
            '--preflight[Look before TensorFlow starts, or do not]' \
            '--no-preflight[Look before TensorFlow starts, or do not]' \
            '--name=[The job'\''s name (the script'\''s)]:value: ' \
            '--override[Replace the TF_CONFIG of your environment]' \
            '--force-tf-config[TF_CONFIG for a job of one task too]' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--detach[Start the run and leave it; `phalanx attach` follows it again]' \
            '--runs=[Where run folders are made (PHALANX_RUNS, else ./runs)]:file:_files' \
            '--quiet[Print how it ended and nothing else]' \
            '--json[Print each event as a line of JSON]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        chaos) _arguments -s -A '-*' : \
            '--workers=[How many workers (1)]:value: ' \
            '--min-workers=[The fewest workers to go on with (--workers)]:value: ' \
            '--max-workers=[The most workers to grow to (--workers)]:value: ' \
            '--ps=[How many parameter servers (0); implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator beside the cluster]' \
            '--workers-per-host=[At most this many workers on a host (evenly spread)]:value: ' \
            '--gpus-per-worker=[GPUs each worker may see (all); 0 hides them]:value: ' \
            '--hosts=[Hosts to start on (1); on one machine they are simulated]:value: ' \
            '--pin[Cores of its own for each task of a host, or not]' \
            '--no-pin[Cores of its own for each task of a host, or not]' \
            '--gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--no-gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--on=[The engine (local)]:value: ' \
            '--image=[The container image, for Kubernetes]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--ports=[Take ports from A-B only]:value: ' \
            '--start-timeout=[Until every task must listen (5m)]:value: ' \
            '--silence=[Without any sign of life, a task is stuck (2m, 0 never)]:value: ' \
            '--hang=[Without a step while others wait, a task hangs (10m, 0 never)]:value: ' \
            '--finish=[After the first task'\''s good end, time for the others (10m)]:value: ' \
            '--max-restarts=[Restarts after failures of one kind (3); 0\: none]:value: ' \
            '--standbys=[Ready interpreters a host keeps for a restart (one a task)]:value: ' \
            '--strategy=[What the script builds (auto)]:value:(mwms ps estimator none auto)' \
            '--keras=[Keras 3\: mended where it fails (auto), tf_keras instead (legacy), left as it is (off)]:value:(auto legacy off)' \
            '--checkpoint=[Folder of checkpoints, {checkpoint} in the command]:file:_files' \
            '--ignore-check=[A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated)]:value: ' \
            '--preflight[Look before TensorFlow starts, or do not]' \
            '--no-preflight[Look before TensorFlow starts, or do not]' \
            '--name=[The job'\''s name (the script'\''s)]:value: ' \
            '--override[Replace the TF_CONFIG of your environment]' \
            '--force-tf-config[TF_CONFIG for a job of one task too]' \
            '--fault=[One fault, written as above; may be given again]:value: ' \
            '--count=[So many faults more at random moments (1 where no --fault is given)]:value: ' \
            '--seed=[Makes the random ones the same again; printed in the report]:value: ' \
            '--every=[Random faults come half to one and a half times this after the one before is over (5s)]:value: ' \
            '--kinds=[Of these kinds, by comma (kill,stop)]:value: ' \
            '--patience=[A fault of which nothing has come by then counts as hung, and ends the run where we have started it (2m)]:value: ' \
            '--reference[Start it undisturbed first, to compare with]' \
            '--no-reference[Start it undisturbed first, to compare with]' \
            '--compare=[Lines of the leader that have to be the same too, besides its last one\: a regular expression]:value: ' \
            '--tolerance=[Numbers may differ by so much, absolute or relative (0\: the same digits)]:value: ' \
            '--runs=[Where run folders are made (PHALANX_RUNS, else ./runs)]:file:_files' \
            '--json[The report for scripts]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        plan) _arguments -s -A '-*' : \
            '--workers=[How many workers (1)]:value: ' \
            '--min-workers=[The fewest workers to go on with (--workers)]:value: ' \
            '--max-workers=[The most workers to grow to (--workers)]:value: ' \
            '--ps=[How many parameter servers (0); implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator beside the cluster]' \
            '--workers-per-host=[At most this many workers on a host (evenly spread)]:value: ' \
            '--gpus-per-worker=[GPUs each worker may see (all); 0 hides them]:value: ' \
            '--hosts=[Hosts to start on (1); on one machine they are simulated]:value: ' \
            '--pin[Cores of its own for each task of a host, or not]' \
            '--no-pin[Cores of its own for each task of a host, or not]' \
            '--gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--no-gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--on=[The engine (local)]:value: ' \
            '--image=[The container image, for Kubernetes]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--ports=[Take ports from A-B only]:value: ' \
            '--start-timeout=[Until every task must listen (5m)]:value: ' \
            '--silence=[Without any sign of life, a task is stuck (2m, 0 never)]:value: ' \
            '--hang=[Without a step while others wait, a task hangs (10m, 0 never)]:value: ' \
            '--finish=[After the first task'\''s good end, time for the others (10m)]:value: ' \
            '--max-restarts=[Restarts after failures of one kind (3); 0\: none]:value: ' \
            '--standbys=[Ready interpreters a host keeps for a restart (one a task)]:value: ' \
            '--strategy=[What the script builds (auto)]:value:(mwms ps estimator none auto)' \
            '--keras=[Keras 3\: mended where it fails (auto), tf_keras instead (legacy), left as it is (off)]:value:(auto legacy off)' \
            '--checkpoint=[Folder of checkpoints, {checkpoint} in the command]:file:_files' \
            '--ignore-check=[A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated)]:value: ' \
            '--preflight[Look before TensorFlow starts, or do not]' \
            '--no-preflight[Look before TensorFlow starts, or do not]' \
            '--name=[The job'\''s name (the script'\''s)]:value: ' \
            '--override[Replace the TF_CONFIG of your environment]' \
            '--force-tf-config[TF_CONFIG for a job of one task too]' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--runs=[Where run folders would be made (PHALANX_RUNS, else ./runs)]:file:_files' \
            '--json[Print the whole plan as JSON, every task'\''s TF_CONFIG included]' \
            '--detach[Taken so that `run` and `plan` may be swapped; changes nothing here]' \
            '--quiet[Taken so that `run` and `plan` may be swapped; changes nothing here]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        preflight) _arguments -s -A '-*' : \
            '--workers=[How many workers (1)]:value: ' \
            '--min-workers=[The fewest workers to go on with (--workers)]:value: ' \
            '--max-workers=[The most workers to grow to (--workers)]:value: ' \
            '--ps=[How many parameter servers (0); implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator beside the cluster]' \
            '--workers-per-host=[At most this many workers on a host (evenly spread)]:value: ' \
            '--gpus-per-worker=[GPUs each worker may see (all); 0 hides them]:value: ' \
            '--hosts=[Hosts to start on (1); on one machine they are simulated]:value: ' \
            '--pin[Cores of its own for each task of a host, or not]' \
            '--no-pin[Cores of its own for each task of a host, or not]' \
            '--gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--no-gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--on=[The engine (local)]:value: ' \
            '--image=[The container image, for Kubernetes]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--ports=[Take ports from A-B only]:value: ' \
            '--start-timeout=[Until every task must listen (5m)]:value: ' \
            '--silence=[Without any sign of life, a task is stuck (2m, 0 never)]:value: ' \
            '--hang=[Without a step while others wait, a task hangs (10m, 0 never)]:value: ' \
            '--finish=[After the first task'\''s good end, time for the others (10m)]:value: ' \
            '--max-restarts=[Restarts after failures of one kind (3); 0\: none]:value: ' \
            '--standbys=[Ready interpreters a host keeps for a restart (one a task)]:value: ' \
            '--strategy=[What the script builds (auto)]:value:(mwms ps estimator none auto)' \
            '--keras=[Keras 3\: mended where it fails (auto), tf_keras instead (legacy), left as it is (off)]:value:(auto legacy off)' \
            '--checkpoint=[Folder of checkpoints, {checkpoint} in the command]:file:_files' \
            '--ignore-check=[A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated)]:value: ' \
            '--preflight[Look before TensorFlow starts, or do not]' \
            '--no-preflight[Look before TensorFlow starts, or do not]' \
            '--name=[The job'\''s name (the script'\''s)]:value: ' \
            '--override[Replace the TF_CONFIG of your environment]' \
            '--force-tf-config[TF_CONFIG for a job of one task too]' \
            '--runs=[Where run folders would be made (PHALANX_RUNS, else ./runs)]:file:_files' \
            '--json[Print the checks as JSON]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        advise) _arguments -s -A '-*' : \
            '--workers=[For so many workers (2; one on each host that was measured)]:value: ' \
            '--ps=[With so many parameter servers (the fewest that hold the model and are no brake)]:value: ' \
            '--hosts=[They have so many hosts (1), all alike]:value: ' \
            '--memory=[Memory of one host (this machine'\''s)]:value: ' \
            '--cores=[Cores of one host (this machine'\''s)]:value: ' \
            '--bandwidth=[From one host to another\: 10Gbit or 1.25GB, a second (10Gbit)]:value: ' \
            '--measure=[Measure these hosts, by pairs and all at once\: n1,n2 or n(1-4), with NAME=ADDRESS where the others need another]:value: ' \
            '--through=[What runs a command on {host}, without a question (ssh -o BatchMode=yes -o ConnectTimeout=10 {host})]:value: ' \
            '--probe-time=[So long for each round of pairs (500ms)]:value: ' \
            '--ports=[Hosts call each other at ports A-B only, for firewalls (any)]:value: ' \
            '--save=[Write what was measured to this file]:file:_files' \
            '--measured=[Take it from that file again]:file:_files' \
            '--parameters=[Parameters of dense layers\: 25M]:value: ' \
            '--tables=[An embedding table, ROWSxCOLUMNS\: 10Mx64 (may be repeated)]:value: ' \
            '--ids=[Rows that one example takes from each table (1)]:value: ' \
            '--optimizer=[sgd, momentum, adagrad, rmsprop, adam and their like (adam)]:value: ' \
            '--batch=[Examples of one step of all workers together (the script'\''s; else 32)]:value: ' \
            '--step=[What one step takes on one worker by itself, at its part of the batch (--batch / --workers)\: 120ms (reckoned)]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--patience=[The script has so long to come to its first step (2m)]:value: ' \
            '--json[Print it all as JSON]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        bench) _arguments -s -A '-*' : \
            '--workers=[The sizes, by comma (1,2)]:value: ' \
            '--ps=[With so many parameter servers, and a chief]:value: ' \
            '--steps=[At least so many steps of each size (50), after ten that are not counted]:value: ' \
            '--seconds=[For at least so long (5s)]:value: ' \
            '--patience=[A size that has not done its steps by then has failed (5m)]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--json[Print it all as JSON]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        init) _arguments -s : \
            '--output=[The file to write; `-` prints it]:file:_files' \
            '-o[The file to write; `-` prints it]:file:_files' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        import) _arguments -s : \
            '--output=[The file to write (job.yaml), or a folder for one file each; `-` prints it, and the list to standard error]:file:_files' \
            '-o[The file to write (job.yaml), or a folder for one file each; `-` prints it, and the list to standard error]:file:_files' \
            '--name=[The one job to import, of several in the file]:value: ' \
            '--force[Overwrite what is there]' \
            '--json[The list as JSON]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        schema) _arguments -s : \
            '--help[Say what it does and takes]' ;;
        ps) _arguments -s : \
            '--all[Ended runs of any age too]' \
            '-a[Ended runs of any age too]' \
            '--running[Only the runs that go on]' \
            '--json[An array of runs for scripts]' \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        logs) _arguments -s : \
            '--follow[Until the run has ended]' \
            '-f[Until the run has ended]' \
            '--merged[One timeline of all tasks, with times]' \
            '--since=[Lines from then on\: 90s, 5m, 2h, 1d ago, or a date]:value: ' \
            '--err[Standard error alone]' \
            '--out[Standard output alone]' \
            '--generation=[An older generation (the newest)]:value: ' \
            '--json[One JSON object a line]' \
            '--raw[Exact bytes of one stream of each task]' \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '*:run:_phalanx_runs' ;;
        events) _arguments -s : \
            '--follow[Until the run has ended]' \
            '-f[Until the run has ended]' \
            '--json[As the records hold them, one JSON object a line]' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        report) _arguments -s : \
            '--json[The whole report for scripts]' \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        attach) _arguments -s : \
            '--quiet[The result alone]' \
            '--json[Each event as a line of JSON]' \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        stacks) _arguments -s : \
            '--json[One JSON object a task and line]' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        diagnose) _arguments -s : \
            '--json[Every figure, for scripts]' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        stop) _arguments -s : \
            '--now[KILL at once, without a grace to save in]' \
            '--wait[Return when it has ended]' \
            '--no-wait[Return when it has ended]' \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        scale) _arguments -s : \
            '--on=[`kubernetes`\: a run of that cluster that nobody here has started]:value: ' \
            '--context=[The context of the kubeconfig (its current one)]:value: ' \
            '--namespace=[The namespace (the context'\''s)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        join) _arguments -s : \
            '--host=[Its number (that of a lost host, else a new one)]:value: ' \
            '--help[Say what it does and takes]' \
            '1:run:_phalanx_runs' ;;
        render) _arguments -s -A '-*' : \
            '--workers=[How many workers (1)]:value: ' \
            '--min-workers=[The fewest workers to go on with (--workers)]:value: ' \
            '--max-workers=[The most workers to grow to (--workers)]:value: ' \
            '--ps=[How many parameter servers (0); implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator beside the cluster]' \
            '--workers-per-host=[At most this many workers on a host (evenly spread)]:value: ' \
            '--gpus-per-worker=[GPUs each worker may see (all); 0 hides them]:value: ' \
            '--hosts=[Hosts to start on (1); on one machine they are simulated]:value: ' \
            '--pin[Cores of its own for each task of a host, or not]' \
            '--no-pin[Cores of its own for each task of a host, or not]' \
            '--gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--no-gpu-growth[GPU memory as it is needed (where tasks share a GPU)]' \
            '--on=[The engine (local)]:value: ' \
            '--image=[The container image, for Kubernetes]:value: ' \
            '--python=[The interpreter for the script (found\: see `phalanx plan`)]:file:_files' \
            '--ports=[Take ports from A-B only]:value: ' \
            '--start-timeout=[Until every task must listen (5m)]:value: ' \
            '--silence=[Without any sign of life, a task is stuck (2m, 0 never)]:value: ' \
            '--hang=[Without a step while others wait, a task hangs (10m, 0 never)]:value: ' \
            '--finish=[After the first task'\''s good end, time for the others (10m)]:value: ' \
            '--max-restarts=[Restarts after failures of one kind (3); 0\: none]:value: ' \
            '--standbys=[Ready interpreters a host keeps for a restart (one a task)]:value: ' \
            '--strategy=[What the script builds (auto)]:value:(mwms ps estimator none auto)' \
            '--keras=[Keras 3\: mended where it fails (auto), tf_keras instead (legacy), left as it is (off)]:value:(auto legacy off)' \
            '--checkpoint=[Folder of checkpoints, {checkpoint} in the command]:file:_files' \
            '--ignore-check=[A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated)]:value: ' \
            '--preflight[Look before TensorFlow starts, or do not]' \
            '--no-preflight[Look before TensorFlow starts, or do not]' \
            '--name=[The job'\''s name (the script'\''s)]:value: ' \
            '--override[Replace the TF_CONFIG of your environment]' \
            '--force-tf-config[TF_CONFIG for a job of one task too]' \
            '--output=[The folder to write (k8s)]:file:_files' \
            '-o[The folder to write (k8s)]:file:_files' \
            '--namespace=[The namespace (on.kubernetes.namespace)]:value: ' \
            '--static[Plain pods with TF_CONFIG and no agent\: for images with an older Python]' \
            '--own-key[Leave the Secret with the run'\''s key to you, in place of one that Kubernetes fills]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        kubernetes) _arguments -s : \
            '--namespace=[The namespace of the Role (where it is applied)]:value: ' \
            '--name=[What the Role is called]:value: ' \
            '--no-role[For jobs with `rbac\: none`\: then no Role is made for the lead, and none has to be given]' \
            '--jobset[For jobs with `jobset\: on` as well]' \
            '--gang=[For jobs with this `gang` as well]:value:(volcano coscheduling)' \
            '--help[Say what it does and takes]' \
            '1:value:(rbac)' ;;
        check) _arguments -s : \
            '--strategy=[What the script uses\: MultiWorkerMirroredStrategy, ParameterServerStrategy, tf.estimator; auto\: ps where the cluster has parameter servers, else mwms]:value:(auto mwms ps estimator)' \
            '--tf-version=[The TensorFlow that will read it, such as 2.21]:value: ' \
            '--expect-cluster[A missing or empty cluster is an error\: TensorFlow would train alone]' \
            '--hosts=[How many machines the job has; localhost is an error above 1]:value: ' \
            '--python=[The interpreter that will run the script (found\: see `phalanx plan`)]:file:_files' \
            '--workers=[How many workers will run the script (more than one)]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--ps=[How many parameter servers the cluster will have; implies one chief]:value: ' \
            '--evaluator[Whether an evaluator will run it too]' \
            '--ignore=[A rule, by id, to leave out (may be repeated)]:value: ' \
            '--format=[text for people, json for programs, github and sarif for pipelines]:value:(text json github sarif)' \
            '--json[Short for --format json]' \
            '--fail-on=[Exit with 1 when something at least this grave is found]:value:(error warning info never)' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        explain) _arguments -s : \
            '--strategy=[What the script uses\: MultiWorkerMirroredStrategy, ParameterServerStrategy, tf.estimator; auto\: ps where the cluster has parameter servers, else mwms]:value:(auto mwms ps estimator)' \
            '--tf-version=[The TensorFlow that will read it, such as 2.21]:value: ' \
            '--json[Short for --format json]' \
            '--width=[Columns of the drawing]:value: ' \
            '--ascii[Draw with + - | only]' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        fix) _arguments -s : \
            '--strategy=[What the script uses\: MultiWorkerMirroredStrategy, ParameterServerStrategy, tf.estimator; auto\: ps where the cluster has parameter servers, else mwms]:value:(auto mwms ps estimator)' \
            '--in-place[Rewrite the files; the original stays beside each as FILE.bak]' \
            '--fail-on=[Exit with 1 when something at least this grave is found]:value:(error warning info never)' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        agree) _arguments -s : \
            '--format=[text for people, json for programs, github and sarif for pipelines]:value:(text json github sarif)' \
            '--json[Short for --format json]' \
            '--fail-on=[Exit with 1 when something at least this grave is found]:value:(error warning info never)' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        generate) _arguments -s : \
            '--workers=[How many workers]:value: ' \
            '--ps=[How many parameter servers; implies one chief]:value: ' \
            '--chief[One chief beside the workers, or none]' \
            '--no-chief[One chief beside the workers, or none]' \
            '--evaluator[One evaluator]' \
            '--hosts=[Where they run\: n1,n2 or n(01-04) (localhost)]:value: ' \
            '--port=[The first port of each host; its next task takes the next]:value: ' \
            '--task=[This task'\''s, such as worker\:1]:value: ' \
            '--host=[That of the task on this host; `.` is this machine]:value: ' \
            '--all[Everybody'\''s\: a line each, task, tab, JSON]' \
            '--out=[Everybody'\''s\: a file each in this folder]:file:_files' \
            '--strategy=[What the script uses\: MultiWorkerMirroredStrategy, ParameterServerStrategy, tf.estimator; auto\: ps where the cluster has parameter servers, else mwms]:value:(auto mwms ps estimator)' \
            '--help[Say what it does and takes]' \
            '*:file:_files' ;;
        completion) _arguments -s : \
            '--help[Say what it does and takes]' \
            '1:value:(bash zsh fish)' ;;
    esac
}
if [[ ${funcstack[1]:-} == _phalanx ]]; then
    _phalanx "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
    compdef _phalanx phalanx
fi
