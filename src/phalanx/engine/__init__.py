"""Where a run lives: each engine starts one agent a host, says where the lead will be, and knows nothing of TF_CONFIG."""
