//! The commands that `condor_submit` knows: those that 23.9 took without calling them unused, and a few newer ones.
//!
//! It does not know what they mean.

/// In small letters, sorted.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "accounting_group", "accounting_group_user", "allow_arguments_v1", "allow_environment_v1",
    "allowed_execute_duration", "allowed_job_duration", "append_files", "args", "arguments",
    "aws_access_key_id_file", "aws_region", "aws_secret_access_key_file", "batch_id", "batch_name",
    "buffer_block_size", "buffer_files", "buffer_size", "checkpoint_destination", "checkpoint_exit_by_signal",
    "checkpoint_exit_code", "checkpoint_exit_signal", "compress_files", "concurrency_limits",
    "concurrency_limits_expr", "container_image", "container_service_names", "container_target_dir", "core_size",
    "coresize", "cron_day_of_month", "cron_day_of_week", "cron_hour", "cron_minute", "cron_month", "cron_prep_time",
    "cron_window", "cuda_version", "dag_node_name", "dagman_job_id", "dagman_log", "deferral_prep_time",
    "deferral_time", "deferral_window", "delegate_job_gsi_credentials_lifetime", "description", "disk_usage",
    "docker_image", "docker_network_type", "docker_override_entrypoint", "docker_pull_policy",
    "docker_send_credentials", "dont_encrypt_input_files", "dont_encrypt_output_files", "email_attributes",
    "encrypt_execute_directory", "encrypt_input_files", "encrypt_output_files", "env", "environment",
    "erase_output_and_error_on_restart", "error", "executable", "fetch_files", "file_remaps", "get_env", "getenv",
    "gpus_maximum_capability", "gpus_minimum_capability", "gpus_minimum_memory", "gpus_minimum_runtime",
    "gs_access_key_id_file", "gs_secret_access_key_file", "hold", "hold_kill_sig", "hold_kill_sig_timeout",
    "image_size", "initial_dir", "initialdir", "input", "interactive_args", "iwd", "jar_files", "java_vm_args",
    "java_vm_arguments", "job_ad_information_attrs", "job_batch_id", "job_batch_name", "job_iwd",
    "job_lease_duration", "job_machine_attrs", "job_machine_attrs_history_length", "job_max_vacate_time", "jobset",
    "keep_claim_idle", "kill_sig", "kill_sig_timeout", "leave_in_queue", "load_profile", "local_files", "log",
    "log_xml", "machine_count", "manifest", "manifest_dir", "match_list_length", "materialize_max_idle", "max_idle",
    "max_job_retirement_time", "max_materialize", "max_retries", "max_transfer_input_mb", "max_transfer_output_mb",
    "my_proxy_credential_name", "name", "next_job_start_delay", "nice_user", "noop_job", "noop_job_exit_code",
    "noop_job_exit_signal", "notification", "notify_user", "on_exit_hold", "on_exit_hold_reason",
    "on_exit_hold_subcode", "on_exit_remove", "output", "output_destination", "parallel_script_shadow",
    "parallel_script_starter", "periodic_hold", "periodic_hold_reason", "periodic_hold_subcode", "periodic_release",
    "periodic_remove", "periodic_vacate", "preferences", "preserve_relative_paths", "primary_unix_group", "prio",
    "priority", "public_input_files", "rank", "remote_initialdir", "remove_kill_sig", "remove_kill_sig_timeout",
    "rendezvousdir", "request_cpus", "request_disk", "request_gpus", "request_gpus_memory", "request_memory",
    "require_gpus", "requirements", "retry_request_memory", "retry_request_memory_increase",
    "retry_request_memory_max", "retry_until", "run_as_owner", "s3_access_key_id_file", "s3_secret_access_key_file",
    "scitokens_file", "shell", "should_transfer_files", "skip_filechecks", "skip_if_dataflow", "stack_size",
    "starter_debug", "starter_log", "stderr", "stdin", "stdout", "stream_error", "stream_input", "stream_output",
    "submit_event_notes", "submit_event_user_notes", "success_exit_code", "suspend_job_at_exec", "tool_daemon_args",
    "tool_daemon_arguments", "tool_daemon_cmd", "tool_daemon_error", "tool_daemon_input", "tool_daemon_output",
    "transfer_checkpoint_files", "transfer_container", "transfer_error", "transfer_executable", "transfer_input",
    "transfer_input_files", "transfer_input_remaps", "transfer_output", "transfer_output_files",
    "transfer_output_remaps", "transfer_plugins", "ulog_execute_attrs", "universe", "use_common_files",
    "use_oauth_services", "use_scitoken", "use_scitokens", "use_x509userproxy", "user_log", "want_campus_pools",
    "want_flocking", "want_glidein", "want_graceful_removal", "want_io_proxy", "want_name", "want_ospool",
    "when_to_transfer_output", "x509userproxy",
];

/// Attributes of jobs that `condor_submit` takes as commands too, in small letters, sorted.
#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "acctgroupuser", "allowedexecuteduration", "allowedjobduration", "appendfiles", "awsregion", "bufferblocksize",
    "bufferfiles", "buffersize", "checkpointdestination", "cluster", "compressfiles", "containerimage",
    "containertargetdir", "copytospool", "crondayofmonth", "crondayofweek", "cronhour", "cronminute", "cronmonth",
    "cudaversion", "dagmanjobid", "dagmannodeslog", "dagnodename", "deferraltime",
    "delegatejobgsicredentialslifetime", "dockernetworktype", "dockeroverrideentrypoint", "dockerpullpolicy",
    "dontencryptinputfiles", "dontencryptoutputfiles", "ec2accesskeyid", "ec2secretaccesskey", "emailattributes",
    "encryptexecutedirectory", "eraseoutputanderroronrestart", "fetchfiles", "fileremaps", "holdkillsig",
    "isnoopjob", "jarfiles", "javavmargs", "jobadinformationattrs", "jobbatchid", "jobbatchname", "jobdescription",
    "jobleaseduration", "jobmachineattrs", "jobmachineattrshistorylength", "jobmaterializemaxidle", "jobmaxretries",
    "jobmaxvacatetime", "jobprio", "jobsetname", "jobstarterdebug", "jobstarterlog", "jobsuccessexitcode",
    "keepclaimidle", "killsigtimeout", "lastmatchlistlength", "leavejobinqueue", "loadprofile", "localfiles",
    "manifestdesired", "manifestdir", "maxjobretirementtime", "maxtransferinputmb", "maxtransferoutputmb",
    "nextjobstartdelay", "niceuser", "noopjobexitcode", "noopjobexitsignal", "notifyuser", "onexithold",
    "onexitholdreason", "onexitholdsubcode", "onexitremove", "outputdestination", "parallelscriptshadow",
    "parallelscriptstarter", "periodichold", "periodicholdreason", "periodicholdsubcode", "periodicrelease",
    "periodicremove", "periodicvacate", "preserverelativepaths", "publicinputfiles", "remoteiwd", "removekillsig",
    "requestcpus", "requestdisk", "requestgpus", "requestmemory", "runasowner", "scitokensfile",
    "shouldtransferfiles", "skipifdataflow", "stacksize", "streamerr", "streamin", "streamout",
    "successcheckpointexitcode", "tooldaemoncmd", "transfercheckpoint", "transfercontainer", "transfererr",
    "transferexecutable", "transferin", "transferinputfiles", "transferout", "transferoutputfiles",
    "useoauthservices", "userlogexecuteeventattrs", "userlogusexml", "wantgracefulremoval", "wantioproxy",
    "whentotransferoutput",
];

/// Families of commands for clouds and grids, of which there are too many to list.
const FAMILIES: &[&str] = &["arc_", "azure_", "batch_", "ec2_", "gce_", "grid_", "nordugrid_", "vm_", "globus_"];

/// What people write when they mean a request.
const REQUESTS: &[(&str, &str)] = &[
    ("cpu", "request_cpus"),
    ("cpus", "request_cpus"),
    ("disk", "request_disk"),
    ("gpu", "request_gpus"),
    ("gpus", "request_gpus"),
    ("memory", "request_memory"),
    ("request_cpu", "request_cpus"),
    ("request_gpu", "request_gpus"),
    ("request_mem", "request_memory"),
];

pub fn is_known(small: &str) -> bool {
    KNOWN.binary_search(&small).is_ok()
        || ATTRIBUTES.binary_search(&small).is_ok()
        || FAMILIES.iter().any(|family| small.starts_with(family))
        || small.ends_with("_oauth_permissions")
        || small.ends_with("_oauth_resource")
        // `request_<resource>` asks for what the pool's administrator named.
        || (small.starts_with("request_") && meant(small).is_none())
}

/// True for what `condor_submit` understands: a command, or an attribute of the job.
pub fn is_command(name: &str) -> bool {
    let small = name.to_ascii_lowercase();
    let attribute = small.starts_with('+') || small.starts_with("my.");
    attribute || is_known(&small) || is_named_request(&small)
}

/// A request for something that the pool's administrator named, which nobody else can tell from a slip.
fn is_named_request(small: &str) -> bool {
    small.starts_with("request_") && !REQUESTS.iter().any(|(typo, _)| *typo == small)
}

/// The command that a wrong one most probably was to be.
pub fn meant(small: &str) -> Option<&'static str> {
    match REQUESTS.iter().find(|(typo, _)| *typo == small) {
        Some((_, command)) => Some(command),
        None => crate::diagnostic::did_you_mean(small, KNOWN.iter().copied()),
    }
}

/// One name for commands that have several.
pub fn canonical(small: &str) -> String {
    match small {
        "stdin" => "input".to_owned(),
        "stdout" => "output".to_owned(),
        "stderr" => "error".to_owned(),
        "args" => "arguments".to_owned(),
        "env" => "environment".to_owned(),
        "prio" => "priority".to_owned(),
        "initial_dir" | "job_iwd" | "iwd" => "initialdir".to_owned(),
        "get_env" => "getenv".to_owned(),
        "materialize_max_idle" => "max_idle".to_owned(),
        "requestcpus" => "request_cpus".to_owned(),
        "requestmemory" => "request_memory".to_owned(),
        "requestdisk" => "request_disk".to_owned(),
        "requestgpus" => "request_gpus".to_owned(),
        "transferinputfiles" => "transfer_input_files".to_owned(),
        "transferoutputfiles" => "transfer_output_files".to_owned(),
        "shouldtransferfiles" => "should_transfer_files".to_owned(),
        "whentotransferoutput" => "when_to_transfer_output".to_owned(),
        other => match other.strip_prefix('+') {
            Some(attribute) => format!("my.{attribute}"),
            None => other.to_owned(),
        },
    }
}
