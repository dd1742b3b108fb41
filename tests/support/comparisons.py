"""The first line of a comparison's file."""

HEAD = "table,dataset,partition,method,metric,paper,paper_std,paper_n,ours,std,difference,n,verdict"
HEAD += ",diverged,low,high,scale,device,counterpart"
