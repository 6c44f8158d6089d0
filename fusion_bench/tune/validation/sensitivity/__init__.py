"""How much each parameter matters: ablation, importance and the plateau."""
