"""What a measure looks at: ranked rows, groups of ties, the gains of unjudged documents."""
