"""Where a run lives: an engine starts one agent a host and says where the lead will be; TF_CONFIG it never sees."""
